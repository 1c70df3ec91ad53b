"""Taggers that find identifiers in free text: one per module, found by its file name."""
