"""Microdata out: masking methods, privacy models, loss metrics, and the pipeline that runs them."""

from tacit.verbal import make_callable

make_callable(__name__)
