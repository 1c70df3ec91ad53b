"""Audit of a private estimator by canaries: records with an unlikely label, of which a random half is learned."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.models._base import AttackedModel, Floats
from sfumato.attacks.models._canaries import CanaryAudit, audit_one_run
from sfumato.errors import NotApplicable
from sfumato.rng import Rng


def audit_estimator(model: AttackedModel, *, canaries: int, rng: Rng, delta: float) -> CanaryAudit:
    """A lower bound on the epsilon of the algorithm, from one more fit that is not published.

    A canary has features drawn column by column from the training data, and the class that the model finds least
    likely. It is guessed to be learned where the new model likes it much better than the old one does.
    """
    if not model.is_classifier:
        raise NotApplicable("Canaries need a classifier.", fix="Audit a regression with `audit_repeated` in Python.")
    made = _canaries(model, canaries, rng.child("records"))
    before = model.log_likelihood(model.estimator, made)

    def score(included: npt.NDArray[np.bool_]) -> Floats:
        again = model.refit(pl.concat([model.members.select(made.columns), made.filter(included)]))
        return model.log_likelihood(again, made) - before

    return audit_one_run(score, canaries, rng=rng, delta=delta)


def _canaries(model: AttackedModel, count: int, rng: Rng) -> pl.DataFrame:
    rows = model.members.height
    columns = {name: model.members[name][rng.child(name).generator.integers(0, rows, count)] for name in model.features}
    frame = pl.DataFrame(columns).with_columns(model.members[model.label][np.zeros(count, dtype=int)])
    chances = model.estimator.predict_proba(model.design(frame))
    labels = np.asarray(model.estimator.classes_)[np.argmin(chances, axis=1)]
    return frame.with_columns(pl.Series(model.label, labels.tolist()).cast(model.members.schema[model.label]))
