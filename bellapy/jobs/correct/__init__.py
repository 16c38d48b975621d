"""`bellapy correct`: reads in, the same reads with far fewer errors out.

`alone` tells which reads have too few others, `members` finds the overlaps of every read, `template` corrects one read,
`terms` learns what the reads' errors are, `pipeline` goes through all reads, `output` writes them.
"""
