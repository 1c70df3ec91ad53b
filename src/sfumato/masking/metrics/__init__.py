"""Metrics of information loss, which searches minimize: one per module, found by its file name."""
