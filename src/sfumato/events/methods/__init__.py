"""Masking methods for tables with many rows per person: one per module, found by its file name."""
