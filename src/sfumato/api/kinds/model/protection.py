"""The result of a learning plan: the private model, its attacks and audit, and the files of both folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato import __version__
from sfumato.api.attack_model import MODEL
from sfumato.api.learn import LearnResults, learn
from sfumato.api.protection import PlainProtection
from sfumato.attacks.models import ModelAttack
from sfumato.data.yaml_documents import yaml_text
from sfumato.dataset.plan import plan_text
from sfumato.evaluation import Evaluation
from sfumato.evaluation.formatting import Plain
from sfumato.learning.model_file import model_text
from sfumato.learning.plan import LearningPlan
from sfumato.progress import AUTO, Progress
from sfumato.release.guarantee import Guarantee
from sfumato.release.public_folder import Leaving, PublicFolder, declared, paid
from sfumato.reports.model_page import MODEL_PAGE

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ModelProtection(PlainProtection):
    """A model with differential privacy, which may be published, and figures for its owner."""

    release_kind = "model"
    page = MODEL_PAGE
    written_as = "A model is written as JSON."

    results: LearnResults
    plan: str
    """The plan as it was written."""

    @property
    def promise(self) -> bool:
        return True

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return (self.results.model.privacy_,)

    @property
    def written_plan(self) -> str:
        return self.plan

    @property
    def unmet(self) -> tuple[str, ...]:
        """Whether the audit refutes epsilon. Limits on attacks do not decide about a differentially private model."""
        return ("the audit refutes epsilon",) if self.results.broken else ()

    def _native(self) -> object:
        return self.results.model

    def __repr__(self) -> str:
        return f"<ModelProtection: {self.results.learned.plan.learn}, {self.results.model.privacy_}>"

    def show(self, console: Console | None = None) -> None:
        self.results.show(console)

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, object] | None = None) -> dict[str, object]:
        return {**self._places(folder), **self.results.to_dict(), "files": (manifest or {}).get("files", {})}

    def _document(self) -> dict[str, object]:
        return self.results.to_dict()

    def _write_data(self, public: PublicFolder, private: Path, document: Plain) -> Mapping[str, Leaving[object]]:
        public.text(MODEL, paid(model_text(self.results.model)))
        shown = {key: paid(value) for key, value in self.page.external(document).items()}
        return {"sfumato": declared(__version__), **shown}


def protect_model(
    plan: LearningPlan | str | Path | Mapping[str, object],
    *,
    attacks: Sequence[ModelAttack | str] | None = (),
    seed: int | None = None,
    n_targets: int = 1000,
    seconds: float | None = 60,
    unmet: bool = False,
    progress: Progress = AUTO,
) -> ModelProtection:
    """Fit the model of a plan, charge its ledger, and attack it, as :func:`sfumato.learn` does."""
    loaded = plan if isinstance(plan, LearningPlan) else LearningPlan.parse(plan)
    text = yaml_text(loaded.public()) if isinstance(plan, LearningPlan) else plan_text(plan)
    done = learn(loaded, attacks=attacks, seed=seed, n_targets=n_targets, seconds=seconds, progress=progress)
    manifest = {"sfumato": __version__, "steps": [{"step": loaded.learn, "formal_guarantee": True}]}
    evaluation = Evaluation(manifest=manifest, attacks=done.attacks.outcomes)
    return ModelProtection(results=done, plan=text, evaluation=evaluation, hand_out=unmet)
