"""Measures of released graphs."""
