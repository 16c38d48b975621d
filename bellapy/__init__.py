"""Jobs of long-read alignment on one engine for CPU and GPU.

From the bottom to the top: `errors`; `params`, every default; `records`, the arrays that flow between stages; `report`,
`compute`, what all programs need; `seeding`, k-mers and their places; `engines`, which align; `io`, files; `jobs`, each with
its `pipeline`; `cli`, the commands.  Nothing imports from above.
"""

__version__ = "0.1.0"
