"""Microdata out: masking methods, privacy models, loss metrics, and the pipeline that runs them."""
