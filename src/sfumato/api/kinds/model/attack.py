"""Attack a stored model: a skops file, a model of ``sfumato learn``, or the folder of a released model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.api.attack_model import attack_model, load_model
from sfumato.api.results import AttackResults
from sfumato.attacks.models import ModelAttack
from sfumato.errors import BadParameter
from sfumato.learning.model_file import load_model as load_private_model
from sfumato.progress import AUTO, Progress
from sfumato.release.folder import load_manifest

__all__ = ["MODEL", "attack_stored_model"]

MODEL = "model.json"


def attack_stored_model(
    release: str | Path,
    *,
    original: Any = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    control: Any = None,
    attacks: Sequence[ModelAttack | str] = (),
    secrets: Sequence[str] = (),
    seed: int | None = None,
    n_targets: int = 1000,
    limit: float | None = None,
    seconds: float | None = None,
    progress: Progress = AUTO,
) -> AttackResults:
    """Attack a stored model, as :func:`sfumato.attack_model` does. ``original`` is its training data."""
    if original is None or label is None:
        raise BadParameter(
            "A model needs `original`, its training data, and `label`, the column that it predicts.",
            fix="Pass --original FILE and --label COLUMN.",
        )
    return attack_model(
        _loaded(Path(release)), original, label=label, features=features, control=control, attacks=attacks,
        secrets=secrets, seed=seed, n_targets=n_targets, limit=limit, seconds=seconds, progress=progress,
    )  # fmt: skip


def _loaded(path: Path) -> Any:
    if path.is_dir():
        load_manifest(path)
        return load_private_model(path / MODEL)
    return load_private_model(path) if path.suffix == ".json" else load_model(path)
