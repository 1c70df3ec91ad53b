"""``sfumato.learn``: fit a model with differential privacy, measure it, attack it and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.api.attack_model import run_model_attacks
from sfumato.api.kind import kind_of_plan, plain_plan
from sfumato.api.results import AttackResults
from sfumato.attacks.models import AttackedModel, CanaryAudit, ModelAttack, audit_estimator
from sfumato.data.atomic import replacing
from sfumato.deadline import stopping
from sfumato.errors import BadParameter, NotApplicable
from sfumato.learning.feature_weights import feature_weights
from sfumato.learning.model_file import model_text
from sfumato.learning.plan import LearningPlan
from sfumato.learning.run import LearningResult, run_plan
from sfumato.ledger.register import recorder
from sfumato.progress import AUTO, Progress
from sfumato.release.public_folder import PublicFolder, paid
from sfumato.rng import Rng

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.reports import Audience

_FEWEST = 20
"""Rows below which a model is not attacked: its rows are divided into halves and folds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LearnResults:
    """A private model with its measures, attacks and audit. Only the model may be published."""

    learned: LearningResult
    attacks: AttackResults
    audit: CanaryAudit | None = None

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.learned.model

    @property
    def measures(self) -> dict[str, float]:
        """Figures of the model on test data."""
        return self.learned.measures

    @property
    def broken(self) -> bool:
        """Whether the audit refutes the promised epsilon."""
        return self.audit is not None and self.audit.refutes(self.model.privacy_.epsilon)

    @property
    def met(self) -> bool:
        """Whether the audit refutes nothing and every limit is met."""
        return not self.broken and self.attacks.met

    def to_dict(self) -> dict[str, object]:
        """The document that ``sfumato learn --json`` prints."""
        return {
            **self.learned.to_dict(),
            "membership_bound": self.model.privacy_.membership_bound,
            "domain": self.learned.plan.public_domain(),
            "weights": feature_weights(self.model),
            **self.attacks.to_dict(),
            "audit": None if self.audit is None else {**self.audit.to_dict(), "refuted": self.broken},
        }

    def show(self, console: Console | None = None) -> None:
        """Print what ``sfumato learn`` prints."""
        from sfumato.reports.terminal import output_console, print_attacks

        out, statement = output_console(console), self.model.privacy_
        out.out(f"{self.learned.plan.learn}: {statement}", highlight=False)
        out.out(
            f"Public inputs, which must not come from the data: {', '.join(statement.parameters['public'])}.",
            highlight=False,
        )
        for name, value in self.measures.items():
            out.out(f"  {name.replace('_', ' '):<28}{value:.4f}", highlight=False)
        if self.attacks:
            document = self.attacks.to_dict()
            print_attacks(document["attacks"], document["limits"], out)
            most = f"{statement.membership_bound:.1%}"
            out.out(f"No membership attack can be right about more than {most} of people.", highlight=False)
        if self.audit is not None:
            verdict = "REFUTED" if self.broken else "not refuted"
            out.out(
                f"Audit: epsilon is at least {self.audit.to_dict()['epsilon']:.3f}; the promise is {verdict}.",
                highlight=False,
            )
        if self.measures or self.attacks or self.audit is not None:
            out.out("These figures are not covered by the guarantee.", highlight=False)

    def report(self, path: str | Path, *, internal: bool = True, force: bool = False) -> None:
        """Write the report as one HTML page. The external one has no figure that depends on rows without noise."""
        from sfumato.reports.kind_page import PlainReport
        from sfumato.reports.model_page import MODEL_PAGE

        audience: Audience = "internal" if internal else "external"
        PlainReport(page=MODEL_PAGE, document=self.to_dict(), audience=audience).save(path, force=force)


def learn(
    plan: LearningPlan | str | Path | Mapping[str, object],
    *,
    out: str | Path | None = None,
    force: bool = False,
    attacks: Sequence[ModelAttack | Mapping[str, object] | str] | None = (),
    secrets: Sequence[str] = (),
    audit: int = 0,
    limit: float | None = None,
    seconds: float | None = 60,
    seed: int | None = None,
    n_targets: int = 1000,
    progress: Progress = AUTO,
) -> LearnResults:
    """Fit the model that a plan describes, charge its ledger, and attack it.

    The ledger is charged for the published model only. Attacks and the audit learn further models from the same rows;
    these are discarded, and their figures are for the owner: they are not covered by the guarantee.

    Parameters
    ----------
    plan
        A learning plan, the YAML file of one, or its plain data.
    out
        File for the model (JSON). It is written before the attacks, so that a model that was paid for is not lost.
    attacks
        Names or parts of attacks on models; all that apply if empty, none if None. People of the plan's ``control`` or
        ``test`` are those who are not in the training data; without them the attacks are about the algorithm, which
        then learns from a random half.
    secrets
        Features that attribute inference guesses. All features if left out.
    audit
        Number of canaries of an audit of epsilon; 0 for none.
    limit
        The largest acceptable risk beyond the reference, as a share of what was left to learn.
    seconds
        Time for the attacks, which stop in time.
    """
    if not isinstance(plan, LearningPlan):
        kind = kind_of_plan(plan).part_name()
        if "learn" not in (plain_plan(plan) or {"learn"}):
            raise BadParameter(
                f"The plan has no key `learn`: it is of kind `{kind}`.",
                fix="`sfumato protect` takes plans of all kinds.",
            )
        plan = LearningPlan.parse(plan)
    if out is None:
        learned = run_plan(plan)
    else:
        with replacing(out, force=force) as temporary:  # a place that cannot be written is refused before the charge
            learned = run_plan(plan)
            PublicFolder(path=temporary.parent, promise=True).text(temporary.name, paid(model_text(learned.model)))
            stated = learned.model.privacy_
            record = recorder(
                ledger=stated.ledger or None, dataset=stated.dataset, kind="model", name=Path(out).name,
                plan=plan.public(), charges=() if stated.entry is None else (stated.entry,),
            )  # fmt: skip
            if record is not None:
                record(temporary)
    rng = Rng(seed)
    try:
        target = None if attacks is None and not audit else _target(learned, rng)
    except NotApplicable as refusal:
        return LearnResults(learned=learned, attacks=AttackResults.judged([refusal], limit))
    found = AttackResults(outcomes=())
    if target is not None and attacks is not None:
        found = run_model_attacks(
            target,
            attacks=attacks,
            secrets=secrets,
            rng=rng,
            n_targets=n_targets,
            limit=limit,
            progress=stopping(progress, seconds),
        )
    audited = None
    if audit and target is not None:
        audited = audit_estimator(target, canaries=audit, rng=rng.child("audit"), delta=learned.model.privacy_.delta)
    return LearnResults(learned=learned, attacks=found, audit=audited)


def _target(learned: LearningResult, rng: Rng) -> AttackedModel:
    """The model under attack: the published one with people who are not in it, or one of a half of the people."""
    plan = learned.plan
    reason = "" if plan.target is not None else "Attacks on models need a model that predicts a column."
    if not reason and learned.train.height < _FEWEST:
        reason = f"Attacks on models need at least {_FEWEST} rows."
    if plan.target is None or reason:
        refusal = NotApplicable(reason)
        refusal.facts |= {"attack": "model attacks", "discloses": "membership"}
        raise refusal
    label, features = plan.target, plan.features
    if learned.control is None:
        return AttackedModel.split(learned.model, label=label, features=features, data=learned.train, rng=rng)
    return AttackedModel(
        estimator=learned.model, label=label, features=features, members=learned.train, control=learned.control
    )
