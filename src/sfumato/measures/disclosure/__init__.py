"""Measures of disclosure risk: one per module, found by its file name."""
