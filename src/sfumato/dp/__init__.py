"""Differential privacy: exact noise, its loss, and the budgets it is drawn from."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__)
