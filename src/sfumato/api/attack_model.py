"""``sfumato.attack_model``: attack a scikit-learn model and report the risk of each attack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from sfumato.api.results import AttackResults
from sfumato.attacks.evaluation.loop import AttackRun, run_loop
from sfumato.attacks.evaluation.outcome import Outcome
from sfumato.attacks.models import AttackedModel, ModelAttack
from sfumato.data import read
from sfumato.data.table import Table
from sfumato.deadline import quiet, stopping
from sfumato.errors import BadParameter, FileMissing, NotThatFormat
from sfumato.extras import missing_extra
from sfumato.learning.model_file import load_model as load_private_model
from sfumato.progress import AUTO, Progress
from sfumato.registry import registry
from sfumato.release.folder import load_manifest
from sfumato.rng import Rng

MODEL = "model.json"
_TRUSTED = ("sklearn.", "numpy.", "scipy.", "sfumato.learning.", "builtins.", "collections.")


def attack_model(
    model: object,
    original: object,
    *,
    label: str,
    features: Sequence[str] | None = None,
    control: object = None,
    attacks: Sequence[ModelAttack | Mapping[str, object] | str] = (),
    secrets: Sequence[str] = (),
    seed: int | None = None,
    n_targets: int = 1000,
    limit: float | None = None,
    seconds: float | None = None,
    progress: Progress = AUTO,
) -> AttackResults:
    """Attack a scikit-learn classifier or regressor and report the risk of each attack with its interval.

    Membership attacks ask whether a person is in the training data, attribute inference what a feature of a person is,
    reconstruction what the record of a person is. Each risk stands beside the success rate without the model (baseline)
    and, for attributes, on people who are not in the training data (control).

    Parameters
    ----------
    model
        A fitted estimator, a model of :func:`learn` (its file or release folder), or a file that ``skops.io.dump``
        wrote. A skops file is data, not code: types other than those of scikit-learn, NumPy and SciPy are refused.
    original
        The training data, as a file or a data frame.
    label
        The column that the model predicts.
    features
        Columns of the model, in its order. Its own names, or all columns but the label, if left out.
    control
        People from the same population who are not in the training data. Without them, the same algorithm is refitted
        to a random half of the data, and the other half is the control; the result is then about the algorithm.
    attacks
        Names or parts of attacks on models. All of them if left out.
    secrets
        Features that attribute inference guesses. All features if left out.
    limit
        The largest acceptable risk beyond the reference, as a share of what was left to learn.
    seconds
        Stop after this time. An attack without a result by then is returned as :class:`~sfumato.errors.OutOfTime`.

    Examples
    --------
    >>> import numpy as np, polars as pl
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> draw = np.random.default_rng(1)
    >>> people = pl.DataFrame({"age": draw.integers(20, 80, 400), "ill": draw.integers(0, 2, 400)})
    >>> people = people.with_columns(weight=draw.normal(70, 10, 400))
    >>> tree = DecisionTreeClassifier(random_state=0).fit(people.select("age", "weight").to_numpy(), people["ill"])
    >>> found = attack_model(tree, people, label="ill", features=["age", "weight"], attacks=["loss-threshold"], seed=1)
    >>> found.to_frame()["risk"][0] > 0.7
    True
    """
    progress = stopping(progress, seconds)
    estimator = stored_model(Path(model)) if isinstance(model, str | Path) else model
    data = table_frame(original)
    names = _features(estimator, data, label, features)
    rng = Rng(seed)
    if control is None:
        target = AttackedModel.split(estimator, label=label, features=names, data=data, rng=rng)
    else:
        others = table_frame(control)
        target = AttackedModel(estimator=estimator, label=label, features=names, members=data, control=others)
    return run_model_attacks(
        target, attacks=attacks, secrets=secrets, rng=rng, n_targets=n_targets, limit=limit, progress=progress
    )


def run_model_attacks(
    target: AttackedModel,
    *,
    attacks: Sequence[ModelAttack | Mapping[str, object] | str],
    secrets: Sequence[str],
    rng: Rng,
    n_targets: int,
    limit: float | None,
    progress: Progress,
) -> AttackResults:
    """Run attacks in order; with a deadline, each gets its part of the time that is left."""
    chosen = [
        registry("model-attack").part(item, ModelAttack) for item in (attacks or registry("model-attack").names())
    ]

    def prepared(attack: ModelAttack) -> AttackRun:
        def run(own: Progress) -> Iterable[Outcome]:
            stream = rng.child(attack.part_name())
            return attack.run(target, stream, n_targets=n_targets, secrets=secrets, progress=quiet(own))

        return AttackRun(attack=attack.part_name(), discloses=attack.discloses, run=run)

    outcomes = run_loop([prepared(attack) for attack in chosen], progress=progress)
    return AttackResults.judged(outcomes, limit)


def stored_model(path: Path) -> object:
    """The model of a release folder, of a file of `learn`, or of a skops file."""
    if path.is_dir():
        load_manifest(path)
        return load_private_model(path / MODEL)
    return load_private_model(path) if path.suffix == ".json" else _skops_model(path)


def _skops_model(path: Path) -> object:
    """Read a model that ``skops.io.dump`` wrote. Files with types of other libraries are refused."""
    try:
        from skops import io
    except ImportError:
        raise missing_extra("learning", "skops", needed_by="A skops file") from None
    file = Path(path)
    if not file.is_file():
        raise FileMissing(f"{file} does not exist.", fix="Name a file that `skops.io.dump` wrote.", path=str(file))
    fix = "Write it with `skops.io.dump(model, file)`."
    try:
        types = io.get_untrusted_types(file=file)
    except Exception as failure:  # a broken archive raises errors of zip, JSON and skops
        raise NotThatFormat(
            f"{file} is not a skops file ({type(failure).__name__}).", fix=fix, path=str(file)
        ) from None
    foreign = sorted(name for name in types if not name.startswith(_TRUSTED))
    if foreign:
        raise NotThatFormat(
            f"{file} contains types that are not trusted: {', '.join(foreign)}.",
            fix="Load it yourself after a review and pass the estimator to `sfumato.attack_model`.",
            path=str(file),
        )
    try:
        return io.load(file, trusted=types)
    except Exception as failure:
        raise NotThatFormat(f"{file} cannot be read ({type(failure).__name__}).", fix=fix, path=str(file)) from None


def table_frame(source: object) -> pl.DataFrame:
    """A file or a data frame in memory."""
    if isinstance(source, pl.DataFrame):
        return source
    return source.frame if isinstance(source, Table) else read(source).frame


def _features(estimator: object, data: pl.DataFrame, label: str, features: Sequence[str] | None) -> tuple[str, ...]:
    if not hasattr(estimator, "predict"):
        raise BadParameter("The model has no `predict`.", fix="Pass a fitted classifier or regressor.")
    known = getattr(estimator, "feature_names_in_", None)
    names = features or (known.tolist() if known is not None else [name for name in data.columns if name != label])
    count = getattr(estimator, "n_features_in_", len(names))
    if label in names or len(names) != count:
        raise BadParameter(
            f"The model has {count} features, and {len(names)} columns are named for them.",
            fix="Name the features in the order of the model, without the label.",
        )
    return tuple(str(name) for name in names)
