"""Where the tasks of a job run: processes of this machine, or workers of a cluster."""
