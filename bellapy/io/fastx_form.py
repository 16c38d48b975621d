"""What FASTQ and FASTA look like, and what is often given in their place."""

LINES = 4  # of a record of FASTQ
UPPER = 0xDF  # a letter's bits but for its case
LOOKED_AT = 16  # bytes that tell what a file holds
BYTE_ORDER_MARKS = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"  # of UTF-8 and UTF-16

OTHER_FILES = {
    b"MMI\2": "an index of minimap2. Give the FASTA file that it was made from.",
    b"bellapy-index": "an index of bellapy, not FASTA or FASTQ. `map` takes it as a file, not from a pipe.",
    b"PK\3\4": "a zip archive. Unpack it.",
}
"""What is often given by mistake, by its first bytes."""
