"""Attribute inference from a model (model inversion)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.models._base import AttackedModel, ModelAttack
from sfumato.deadline import batches
from sfumato.errors import BadParameter, OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ModelAttribute(ModelAttack):
    """Attribute inference by model inversion: the attacker knows the label and all features of a person but one, and
    guesses the value under which the model finds the label most likely, weighted by the frequency of the value.
    """

    discloses = Discloses.ATTRIBUTE
    reference = "Fredrikson, Jha, Ristenpart (2015). Model inversion attacks. doi:10.1145/2810103.2813677"

    bins: int = Field(default=10, ge=2, le=100)
    """Numeric secrets with more values are guessed as one of this many quantile bins."""

    def run(
        self,
        model: AttackedModel,
        rng: Rng,
        *,
        n_targets: int,
        secrets: Sequence[str],
        progress: Progress = SILENT,
    ) -> Iterator[Outcome]:
        for name in secrets:
            if name not in model.features:
                raise BadParameter(
                    f"`{name}` is not a feature of the model.",
                    fix="`secrets` are features: the sensitive columns to guess.",
                )
        chosen, done = list(secrets or model.features), 0
        for part in batches(progress, "secrets", len(chosen)):
            yield self._secret(model, chosen[part.start], rng.child(chosen[part.start]), n_targets)
            done = part.stop
        if done < len(chosen):
            raise OutOfTime("Stopped: time was up before every secret was guessed.", fix="Allow more time.")

    def _secret(self, model: AttackedModel, secret: str, rng: Rng, n_targets: int) -> Outcome:
        people = {
            arm: frame[rng.child(arm).generator.choice(frame.height, min(frame.height, n_targets), replace=False)]
            for arm, frame in (("members", model.members), ("control", model.control))
        }
        values = _values(model.control[secret], self.bins)
        residual = None
        if not model.is_classifier:
            residual = max(1e-12, float(-2 * model.log_likelihood(model.estimator, model.control).mean()))
        hits = {}
        for arm, frame in people.items():
            scores = np.empty((len(values.candidates), frame.height))
            for place, candidate in enumerate(values.candidates):
                changed = frame.with_columns(pl.lit(candidate).cast(frame.schema[secret]).alias(secret))
                fit = model.log_likelihood(model.estimator, changed)
                scores[place] = (fit if residual is None else fit / residual) + values.log_prior[place]
            hits[arm] = scores.argmax(axis=0) == values.places(frame[secret])
        common = int(values.log_prior.argmax())
        baseline = int((values.places(people["members"][secret]) == common).sum())
        return Outcome(
            attack=self.part_name(),
            discloses=Discloses.ATTRIBUTE,
            main=Arm(hits=int(hits["members"].sum()), trials=len(hits["members"])),
            baseline=Arm(hits=baseline, trials=len(hits["members"])),
            control=Arm(hits=int(hits["control"].sum()), trials=len(hits["control"])),
            claims=len(hits["members"]),
            knows=(*(name for name in model.features if name != secret), model.label),
            secret=secret,
            parameters=self.to_dict(),
            threat=self.summary(),
            truth="cross-fitting" if model.crossfit else "control file",
            detail={"candidate values": len(values.candidates)},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Values:
    """Candidate values of a sensitive column, known from people who are not in the training data."""

    candidates: list[object]
    log_prior: npt.NDArray[np.float64]
    edges: npt.NDArray[np.float64] | None

    def places(self, series: pl.Series) -> npt.NDArray[np.int64]:
        """The candidate that is right for each person; -1 if none is."""
        if self.edges is not None:
            return np.searchsorted(self.edges, series.cast(pl.Float64).to_numpy(), side="left")
        order = {value: place for place, value in enumerate(self.candidates)}
        return np.array([order.get(value, -1) for value in series.to_list()])


def _values(series: pl.Series, bins: int) -> _Values:
    counts = series.drop_nulls().value_counts(sort=True)
    if series.dtype.is_numeric() and counts.height > bins:
        numbers = series.drop_nulls().cast(pl.Float64).to_numpy()
        edges = np.unique(np.quantile(numbers, np.arange(1, bins) / bins))
        places = np.searchsorted(edges, numbers, side="left")
        present = np.bincount(places, minlength=len(edges) + 1)
        middles = [
            float(np.median(numbers[places == place])) if number else 0.0 for place, number in enumerate(present)
        ]
        return _Values(
            candidates=list(middles), log_prior=np.log(np.maximum(present, 1e-9) / len(numbers)), edges=edges
        )
    counts = counts.head(100)
    shares = counts["count"].to_numpy() / max(1, counts["count"].sum())
    return _Values(candidates=counts[series.name].to_list(), log_prior=np.log(shares), edges=None)
