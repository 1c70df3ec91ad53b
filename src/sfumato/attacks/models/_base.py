"""Base class of attacks on models, and the model under attack with the people it was and was not trained on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.errors import NotApplicable, UnknownColumn
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.wording import did_you_mean

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackedModel:
    """A fitted scikit-learn classifier or regressor, its training data, and people who are not in them."""

    estimator: Any
    label: str
    features: tuple[str, ...]
    members: pl.DataFrame
    """The training data."""
    control: pl.DataFrame
    """People from the same population who are not in the training data."""
    crossfit: bool = False
    """Whether the model was refitted on a part of the data, because no control file was given."""

    def __post_init__(self) -> None:
        for frame in (self.members, self.control):
            for name in (self.label, *self.features):
                if name not in frame.columns:
                    raise UnknownColumn(f"The data have no column `{name}`.", fix=did_you_mean(name, frame.columns))

    @classmethod
    def split(
        cls, estimator: Any, *, label: str, features: Sequence[str], data: pl.DataFrame, rng: Rng
    ) -> AttackedModel:
        """Refit the algorithm on a random half; the other half are the people who are not in the training data."""
        order = rng.child("split").generator.permutation(data.height)
        half = data.height // 2
        whole = cls(
            estimator=estimator,
            label=label,
            features=tuple(features),
            members=data[order[:half]],
            control=data[order[half:]],
            crossfit=True,
        )
        return replace(whole, estimator=whole.refit(whole.members))

    @property
    def is_classifier(self) -> bool:
        return hasattr(self.estimator, "classes_")

    def design(self, frame: pl.DataFrame) -> object:
        """The features as the estimator was given them: with names if it knows names."""
        chosen = frame.select(self.features)
        return chosen if hasattr(self.estimator, "feature_names_in_") else chosen.to_numpy()

    def refit(self, frame: pl.DataFrame) -> object:
        """The same algorithm with the same parameters, fitted to other data.

        The attacker's models cost the people in the training data nothing: a private estimator keeps no ledger here.
        """
        from sklearn.base import clone

        copy = clone(self.estimator)
        free = {name: None for name in copy.get_params() if name.rpartition("__")[2] in ("ledger", "dataset")}
        return copy.set_params(**free).fit(self.design(frame), frame[self.label].to_numpy())

    def log_likelihood(self, estimator: Any, frame: pl.DataFrame) -> Floats:
        """Log-probability of the true label; for a regressor, up to a constant, with unit variance."""
        truth = frame[self.label].to_numpy()
        if not hasattr(estimator, "classes_"):
            return np.asarray(-0.5 * (truth - estimator.predict(self.design(frame))) ** 2, dtype=np.float64)
        classes = np.asarray(estimator.classes_)
        if hasattr(estimator, "predict_proba"):
            chances = estimator.predict_proba(self.design(frame))
            places = {value: place for place, value in enumerate(classes.tolist())}
            index = np.array([places.get(value, -1) for value in truth.tolist()])
            chance = np.where(index >= 0, chances[np.arange(len(index)), np.maximum(index, 0)], 0.0)
        else:
            chance = np.where(estimator.predict(self.design(frame)) == truth, 0.9, 0.1)
        return np.asarray(np.log(np.clip(chance, 1e-9, 1 - 1e-9)))

    def confidence(self, estimator: object, frame: pl.DataFrame) -> Floats:
        """How well the estimator fits each person: the logit of the true class, or minus the absolute residual."""
        fit = self.log_likelihood(estimator, frame)
        if hasattr(estimator, "classes_"):
            # Chances of exactly 0 and 1, which trees give, would dominate the mean and spread of shadow models.
            fit = np.log(np.clip(np.exp(fit), 0.01, 0.99))
            return np.asarray(fit - np.log(-np.expm1(fit)))
        return -np.sqrt(-2 * fit)


class ModelAttack(Part):
    """Base class of attacks on models.

    The docstring of a subclass is its threat model: what the attacker knows and what they want to learn.
    """

    discloses: ClassVar[Discloses]

    @abstractmethod
    def run(
        self,
        model: AttackedModel,
        rng: Rng,
        *,
        n_targets: int,
        secrets: Sequence[str],
        progress: Progress = SILENT,
    ) -> Iterable[Outcome]:
        """Attack the model; one outcome per sensitive column for attribute inference, otherwise one.

        At the deadline of ``progress`` an attack raises :class:`~sfumato.errors.OutOfTime`, after the outcomes that it
        has.
        """


def membership_targets(model: AttackedModel, rng: Rng, n_targets: int) -> tuple[pl.DataFrame, npt.NDArray[np.bool_]]:
    """Equally many members and others in random order, and which are members."""
    count = min(model.members.height, model.control.height, max(1, n_targets // 2))
    if count < 10:
        raise NotApplicable(
            "Membership inference needs at least ten people in the training data and ten others.",
            fix="Pass a larger control file.",
        )
    columns = [*model.features, model.label]
    inside = model.members[rng.child("members").generator.choice(model.members.height, count, replace=False)]
    outside = model.control[rng.child("others").generator.choice(model.control.height, count, replace=False)]
    both = pl.concat([inside.select(columns), outside.select(columns).cast(inside.select(columns).schema)])
    order = rng.child("order").generator.permutation(both.height)
    return both[order], order < count


def membership_outcome(
    attack: ModelAttack, model: AttackedModel, scores: Floats, member: npt.NDArray[np.bool_], detail: dict[str, object]
) -> Outcome:
    """Members are guessed where the score is positive; a score of 0 counts half."""
    guessed = np.where(scores == 0, 0.5, scores > 0)
    hit = np.where(member, guessed, 1 - guessed)
    others, own = np.sort(scores[~member]), scores[member]
    strict = others[-max(1, int(np.ceil(0.01 * len(others))))]
    return Outcome(
        attack=attack.part_name(),
        discloses=Discloses.MEMBERSHIP,
        main=Arm(hits=float(hit.sum()), trials=len(hit)),
        baseline=Arm(hits=len(hit) / 2, trials=len(hit)),
        claims=int((guessed != 0.5).sum()),
        knows=(*model.features, model.label),
        parameters=attack.to_dict(),
        threat=attack.summary(),
        truth="cross-fitting" if model.crossfit else "control file",
        hit=hit.astype(np.float64),
        detail={
            **detail,
            "members recognized": float(guessed[member].mean()),
            "others taken for members": float(guessed[~member].mean()),
            "members recognized at 1 % false alarms": float((own > strict).mean()),
        },
    )
