"""Masking methods for columns of free text: one per module, found by its file name."""
