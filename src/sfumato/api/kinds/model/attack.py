"""Attack a stored model: a skops file, a model of ``sfumato learn``, or the folder of a released model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sfumato.api.attack_model import attack_model, stored_model, table_frame
from sfumato.api.figures import guarantee_not_checked
from sfumato.api.results import AttackResults, CheckResults, MeasureResults
from sfumato.attacks.models import ModelAttack
from sfumato.errors import BadParameter
from sfumato.learning.run import score_frame
from sfumato.measures import MeasureResult
from sfumato.progress import AUTO, Progress


def attack_stored_model(
    release: str | Path,
    *,
    original: object = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    control: object = None,
    attacks: Sequence[ModelAttack | str] = (),
    secrets: Sequence[str] = (),
    seed: int | None = None,
    n_targets: int = 1000,
    limit: float | None = None,
    seconds: float | None = None,
    progress: Progress = AUTO,
) -> AttackResults:
    """Attack a stored model, as :func:`sfumato.attack_model` does. ``original`` is its training data."""
    model = stored_model(Path(release))
    data, label = _labelled(model, original, label)
    return attack_model(
        model, data, label=label, features=features, control=control, attacks=attacks,
        secrets=secrets, seed=seed, n_targets=n_targets, limit=limit, seconds=seconds, progress=progress,
    )  # fmt: skip


def measure_stored_model(
    release: str | Path, *, original: object = None, label: str | None = None, progress: Progress = AUTO
) -> MeasureResults:
    """Figures of a stored model on data. They are those of the owner, and no guarantee covers them.

    ``original`` is a table with the features and the label: test data, or the training data.
    """
    model = stored_model(Path(release))
    data, label = _labelled(model, original, label)
    found = score_frame(model, data, label)
    ends = tuple(f"{name}_{end}" for name in found for end in ("low", "high"))
    return MeasureResults(
        results=tuple(
            MeasureResult(
                measure=name.replace("_", "-"),
                value=value,
                low=found.get(f"{name}_low"),
                high=found.get(f"{name}_high"),
            )
            for name, value in found.items()
            if name not in ends
        )
    )


def check_model(release: str | Path) -> CheckResults:
    """Differential privacy is a property of the training, which no model shows: it is not checked.

    What is checked is that the file is a model, and in a folder that every file is the one that the manifest names.
    """
    stored_model(Path(release))
    return guarantee_not_checked()


def _labelled(model: object, original: object, label: str | None) -> tuple[pl.DataFrame, str]:
    """The data, and the column that the model predicts: the one named, or the one that the model states."""
    from sfumato.api.kinds.model.protection import ModelProtection

    label = label or getattr(model, "target_name_", None)
    if original is None or label is None:
        raise BadParameter(
            "A model needs `original`, its training data, and `label`, the column that it predicts.",
            fix="Pass both `original` and `label`.",
            option=("original", "label"),
        )
    return (original.results.learned.train if isinstance(original, ModelProtection) else table_frame(original)), label
