"""Engines: one family of back ends for private queries and for masking files larger than memory."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__)
