"""Masking of microdata: methods, privacy models, loss metrics, and the pipeline that runs them."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__)
