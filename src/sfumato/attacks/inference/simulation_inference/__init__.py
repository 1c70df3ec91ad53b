"""Attribute inference by simulation of the published method."""

from sfumato.attacks.inference.simulation_inference.attack import SimulationInference

__all__ = ["SimulationInference"]
