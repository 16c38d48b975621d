"""Seeds of a mapper: minimizers, the index of a reference, anchors and chains of them."""
