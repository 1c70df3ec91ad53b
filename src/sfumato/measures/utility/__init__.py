"""Measures of utility: one per module, found by its file name."""
