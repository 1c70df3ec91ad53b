"""File formats: one per module, found by its file name. A format reads and writes a table."""
