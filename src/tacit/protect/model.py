"""The contract of a privacy model: one class per model in ``protect/models``."""

from __future__ import annotations

from abc import abstractmethod

from tacit.params import Part
from tacit.release import Verdict
from tacit.schema import Dataset

__all__ = ["PrivacyModel"]


class PrivacyModel(Part):
    """A condition on a table: it holds, fails, or could not be checked."""

    @abstractmethod
    def check(self, data: Dataset) -> Verdict:
        """Judge the table as it stands, over its quasi-identifier columns."""
