"""`bellapy map`: reads to their places in a reference.

Read `pipeline` first, then the steps of a batch in its order: `batches` (reading), `select` (which chains are aligned),
`pieces` (how an alignment is cut), `join` (paths), `choose` (primary, secondary, supplementary, mapping quality), `text` and
`output`.  `store` and `rounds` are for an index that memory has no room for.
"""
