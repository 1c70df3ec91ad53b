"""Models: estimators that were learned with differential privacy, and any scikit-learn model to attack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sfumato.api.kind import ReleaseKind
from sfumato.field_docs import DocumentedModel

if TYPE_CHECKING:
    from sfumato.api.kinds.model.protection import ModelProtection
    from sfumato.api.results import AttackResults, CheckResults, MeasureResults
    from sfumato.reports.kind_page import PlainReport

__all__ = ["ModelKind"]


class ModelKind(ReleaseKind):
    """A model: a learning plan with a key ``learn``, a folder with ``model.json``, or a file of skops or `learn`."""

    files = (".skops", "model.json")

    @classmethod
    def plan_models(cls) -> tuple[type[DocumentedModel], ...]:
        from sfumato.learning.plan import LearningPlan

        return (LearningPlan,)

    def is_plan(self, document: Mapping[str, object]) -> bool:
        return "learn" in document

    @property
    def protect(self) -> Callable[..., ModelProtection]:
        from sfumato.api.kinds.model.protection import protect_model

        return protect_model

    @property
    def check(self) -> Callable[..., CheckResults]:
        from sfumato.api.kinds.model.attack import check_model

        return check_model

    @property
    def attack(self) -> Callable[..., AttackResults]:
        from sfumato.api.kinds.model.attack import attack_stored_model

        return attack_stored_model

    @property
    def measure(self) -> Callable[..., MeasureResults]:
        from sfumato.api.kinds.model.attack import measure_stored_model

        return measure_stored_model

    @property
    def report(self) -> Callable[..., PlainReport]:
        from sfumato.reports.model_page import MODEL_PAGE

        return MODEL_PAGE.of_folder
