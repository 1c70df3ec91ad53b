"""Checks of the contracts, for our tests and for yours: ``check_step(MyStep(...))``."""

from sfumato.testing.models import check_model
from sfumato.testing.sample import sample
from sfumato.testing.steps import check_step

__all__ = ["check_model", "check_step", "sample"]
