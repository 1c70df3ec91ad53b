"""Compliance crosswalk: what rules and standards ask, what a run shows, and the questions left to a person."""

from sfumato.reports.compliance.frameworks import CrosswalkItem, Framework, crosswalk

__all__ = ["CrosswalkItem", "Framework", "crosswalk"]
