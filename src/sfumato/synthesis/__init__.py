"""Synthetic data with a differential privacy guarantee: noisy marginals, a graphical model, and draws from it.

>>> from sfumato.synthesis import PrivateSynthesis
>>> PrivateSynthesis(epsilon=1, delta=1e-6).mechanism
'auto'
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__, SynthesisModel="model")
