"""The verbs: protect, attack, measure. The command line and Python use the same ones.

``tacit.protect(recipe, data)`` gives a :class:`Protection`: the release, the secret row map and the account of both.
Nothing is written until :meth:`Protection.save`.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from tacit import __version__
from tacit.attack import Attack, Outcome, Scene, battery, examine
from tacit.attack.outcome import excess
from tacit.data import give_back, read
from tacit.data.atomic import replacing_folder
from tacit.data.table import Table
from tacit.errors import BadParameter, NotApplicable, PolicyNotMet, Unmet
from tacit.measure.measure import Measure, Measurement, Pair
from tacit.progress import SILENT, Progress
from tacit.protect.pipeline import Protected
from tacit.protect.pipeline import protect as run_steps
from tacit.recipe import Limits, Recipe
from tacit.registry import registry
from tacit.release import Lineage, Release
from tacit.release.folder import (
    LINEAGE,
    MANIFEST,
    load_lineage,
    load_release,
    private_folder,
    write_lineage,
    write_release,
)
from tacit.report import Account, column_pictures, report_json, write_report
from tacit.rng import Rng
from tacit.schema import Column, Dataset, Schema

__all__ = ["Protection", "attack", "attack_to_plain", "judge_limits", "measure", "protect"]

DEFAULT_MEASURES = ("class-sizes", "uniqueness", "prosecutor", "ncp", "marginals", "pairs")
"""What is measured when a recipe names nothing."""

_LIBRARIES = ("numpy", "polars", "duckdb", "scipy", "numba", "pydantic")


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What ``protect`` made: the release that may leave, and what its owner must keep."""

    recipe: Recipe
    original: Dataset
    protected: Protected
    release: Release
    account: Account

    @property
    def lineage(self) -> Lineage:
        """The secret row map."""
        return self.protected.lineage

    @property
    def data(self) -> Any:
        """The masked table in the caller's own type: pandas, Polars or Arrow."""
        return give_back(self.release.table)

    @property
    def unmet(self) -> tuple[str, ...]:
        """In words, every model that does not hold and every limit that is exceeded."""
        words = [
            f"{verdict.model} {verdict.state}" + (f": {verdict.reason}" if verdict.reason else "")
            for verdict in self.protected.verdicts
            if not verdict.holds
        ]
        for limit in self.account.limits:
            if not limit["met"]:
                judged = "could not be judged" if limit["value"] is None else f"may be as high as {limit['value']:.3f}"
                words.append(f"limit of {limit['limit']} {limit['wanted']}: {limit['attack'] or 'it'} {judged}")
        return tuple(words)

    def save(
        self, folder: str | Path, *, suffix: str = ".csv", force: bool = False, unmet: bool = False
    ) -> dict[str, Any]:
        """Write the release folder and the private one beside it, both or neither.

        A release that does not meet its models or limits is refused unless ``unmet`` asks for it. Returns the document
        that ``tacit protect --json`` prints.
        """
        target = Path(folder)
        if self.unmet and not unmet:
            kind = PolicyNotMet if self.protected.holds else Unmet
            raise kind(
                "The release is not written: " + "; ".join(self.unmet) + ".",
                fix="Change the recipe, or ask for it all the same with --unmet.",
                document=self.to_plain(),
            )
        with ExitStack() as stack:
            private = stack.enter_context(replacing_folder(private_folder(target), force=force, marker=LINEAGE))
            public = stack.enter_context(replacing_folder(target, force=force, marker=MANIFEST))
            private.chmod(0o700)
            write_lineage(self.lineage, private)

            def external(path: Path, files: Mapping[str, str]) -> None:
                write_report(replace(self.account, files=files), path, audience="external")

            def twin(path: Path, files: Mapping[str, str]) -> None:
                text = report_json(replace(self.account, files=files), "external")
                path.write_text(text + "\n", encoding="utf-8")

            documents = {"report.html": external, "report.json": twin}
            manifest = write_release(self.release, public, suffix=suffix, documents=documents)
            told = replace(self.account, files=manifest["files"])
            write_report(told, private / "report.html", audience="internal")
            (private / "report.json").write_text(report_json(told, "internal") + "\n", encoding="utf-8")
            (private / "recipe.yaml").write_text(self.recipe.to_yaml(), encoding="utf-8")
        return self.to_plain(target, manifest)

    def to_plain(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What happened, for the owner, as plain data."""
        files = (manifest or {}).get("files", {})
        data = next((digest for name, digest in files.items() if name.startswith("data.")), None)
        return {
            "release": f"{folder}/" if folder is not None else None,
            "private": f"{private_folder(folder)}/" if folder is not None else None,
            "rows": self.release.table.rows,
            "original_rows": self.original.rows,
            "steps": [done.private() for done in self.protected.done],
            "verdicts": [verdict.to_plain() for verdict in self.protected.verdicts],
            "attacks_before": list(self.account.attacks_before),
            "attacks": list(self.account.attacks),
            "measures": list(self.account.measures),
            "limits": list(self.account.limits),
            "sha256": data,
            "files": dict(files),
        }


def protect(
    recipe: Recipe | str | Path | Mapping[str, Any],
    data: Any = None,
    *,
    seed: int | None = None,
    tries: int = 5000,
    progress: Progress = SILENT,
) -> Protection:
    """Run a recipe on its own data or on ``data``, attack what comes out, and measure it.

    ``recipe`` is a :class:`Recipe`, a path, or plain data; ``data`` a path, a database URL, or a pandas, Polars or
    Arrow table. The recipe's attacks are run before and after; without any, a battery that fits the release.
    """
    made = _recipe(recipe)
    table = _table(made, data)
    rng = Rng(seed if seed is not None else made.seed)
    original = Dataset.of(table, made.schema)
    protected = run_steps(original, steps=made.steps, models=made.models, rng=rng, order=made.order, progress=progress)
    release = Release(table=protected.data.table, manifest=_manifest(made, protected))
    scene = Scene(original=original, release=release, lineage=protected.lineage)
    attacks = made.attacks or battery(scene)
    after = attack_scene(scene, attacks, rng=rng, tries=tries, progress=progress)
    before = attack_scene(_unprotected(original), attacks, rng=rng, tries=tries, progress=progress)
    pair = Pair(original=original, release=release, lineage=protected.lineage)
    found = measure_pair(pair, made.measures or _default_measures(), rng=rng, progress=progress)
    account = Account(
        title=made.title or "Release of " + (Path(made.source.location).stem if made.source else "a table"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        manifest=release.manifest,
        files={},
        recipe_public=made.public(),
        recipe=made.to_plain(),
        original_rows=original.rows,
        original_columns=original.table.columns,
        outcomes=tuple(done.private() for done in protected.done),
        verdicts=tuple(verdict.to_plain() for verdict in protected.verdicts),
        attacks_before=tuple(attack_to_plain(item) for item in before),
        attacks=tuple(attack_to_plain(item) for item in after),
        measures=tuple(item.to_plain() for item in found),
        columns=tuple(column_pictures(original.table, release.table, release.manifest)),
        limits=tuple(judge_limits(made.limits, after)),
        riskiest=_riskiest(after),
    )
    return Protection(recipe=made, original=original, protected=protected, release=release, account=account)


def attack(
    release: Release | str | Path,
    *,
    original: Any,
    attacks: Sequence[Attack | str] = (),
    auxiliary: Any = None,
    control: Any = None,
    knows: Sequence[str] | None = None,
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    aligned: bool = False,
    seed: int | None = None,
    tries: int = 5000,
    progress: Progress = SILENT,
) -> list[Outcome | NotApplicable]:
    """Attack a release, ours or somebody else's. What does not apply is returned as such, never as a risk of 0.

    Roles come from ``schema``, else from the release's manifest; for a release without one, ``knows`` names the
    quasi-identifiers. The row map is found beside a release folder, or given as ``lineage``.
    """
    made, found = _opened(release, lineage)
    truth = _dataset(original, made, schema, knows)
    scene = Scene(
        original=truth,
        release=made,
        lineage=found,
        aligned=aligned,
        auxiliary=read(auxiliary) if auxiliary is not None else None,
        control=read(control) if control is not None else None,
        knows=tuple(knows) if knows else None,
    )
    chosen = [_attack(item) for item in attacks] or list(battery(scene))
    return attack_scene(scene, chosen, rng=Rng(seed), tries=tries, progress=progress)


def measure(
    release: Release | str | Path,
    *,
    original: Any,
    measures: Sequence[Measure | str] = (),
    schema: Schema | None = None,
    lineage: Lineage | str | Path | None = None,
    seed: int | None = None,
    progress: Progress = SILENT,
) -> list[Measurement]:
    """Measure disclosure risk and utility of a release against its original."""
    made, found = _opened(release, lineage)
    pair = Pair(original=_dataset(original, made, schema, None), release=made, lineage=found)
    chosen = [_measure(item) for item in measures] or _default_measures()
    return measure_pair(pair, chosen, rng=Rng(seed), progress=progress)


# --- the parts of the verbs -----------------------------------------------------------------------------------------


def attack_scene(
    scene: Scene, attacks: Iterable[Attack], *, rng: Rng, tries: int, progress: Progress
) -> list[Outcome | NotApplicable]:
    """Run attacks one after the other; the n-th draws from the stream of its own."""
    listed = list(attacks)
    outcomes: list[Outcome | NotApplicable] = []
    with progress.task("attacking", len(listed)) as tick:
        for number, item in enumerate(listed):
            try:
                outcomes.append(examine(item, scene, rng=rng.child("attacks", number), progress=SILENT, tries=tries))
            except NotApplicable as refusal:
                refusal.facts["attack"] = item.part_name()
                refusal.facts["discloses"] = str(item.discloses)
                outcomes.append(refusal)
            tick(1)
    return outcomes


def measure_pair(pair: Pair, measures: Iterable[Measure], *, rng: Rng, progress: Progress) -> list[Measurement]:
    """Run measures one after the other; one that does not apply gives its reason and no value."""
    listed = list(measures)
    found: list[Measurement] = []
    with progress.task("measuring", len(listed)) as tick:
        for number, item in enumerate(listed):
            name = item.part_name()
            try:
                found.append(item.of(pair, rng.child("measures", number, name), SILENT))
            except NotApplicable as refusal:
                found.append(Measurement(measure=name, value=None, reason=str(refusal)))
            tick(1)
    return found


def judge_limits(limits: Limits, outcomes: Sequence[Outcome | NotApplicable]) -> list[dict[str, Any]]:
    """Each limit with the worst value that was judged against it.

    Identity is judged by the upper end of the interval. Of an attribute or membership attack, what it gets right beyond
    its reference (people outside the release, or the best blind guess) is judged in the same way, because being right
    about the majority is no disclosure. A limit that nothing could be judged against is not met.
    """
    judged = []
    for name, wanted in limits.items().items():
        kind = "identity" if name == "risk" else name
        values = [
            (_judged_value(outcome), outcome.attack)
            for outcome in outcomes
            if isinstance(outcome, Outcome) and str(outcome.discloses) == kind
        ]
        value, attack_name = max(values, default=(None, None))
        met = value is not None and value <= wanted
        judged.append({"limit": name, "wanted": wanted, "value": value, "met": met, "attack": attack_name})
    return judged


def _judged_value(outcome: Outcome) -> float:
    plain = outcome.to_plain()
    high: float = plain["high"]
    if plain["discloses"] == "identity":
        return high
    return excess(high, max(plain["baseline"], plain["control"] or 0.0))


def attack_to_plain(item: Outcome | NotApplicable) -> dict[str, Any]:
    if isinstance(item, Outcome):
        return item.to_plain()
    return {
        "attack": item.facts.get("attack"),
        "discloses": item.facts.get("discloses"),
        "risk": None,
        "reason": str(item),
    }


def _recipe(recipe: Recipe | str | Path | Mapping[str, Any]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Mapping):
        return Recipe.parse(recipe)
    return Recipe.parse(recipe) if isinstance(recipe, str) and "\n" in recipe else Recipe.load(recipe)


def _table(recipe: Recipe, data: Any) -> Table:
    if data is not None:
        return read(data)
    if recipe.source is None:
        raise BadParameter("The recipe names no data and none was given.", fix="Add `data:` to it, or name a file.")
    return read(recipe.source.location, **recipe.source.options)


def _manifest(recipe: Recipe, protected: Protected) -> dict[str, Any]:
    public = recipe.public()
    released = protected.data.table
    return {
        "tacit": __version__,
        "recipe": public,
        "columns": {name: column for name, column in public["columns"].items() if name in released.columns},
        "models": public["models"],
        "steps": [done.public() for done in protected.done],
        "verdicts": [
            {"model": verdict.model, "state": str(verdict.state), "wanted": verdict.wanted}
            for verdict in protected.verdicts
        ],
        "order": recipe.order,
        "rows": released.rows,
    }


def _unprotected(original: Dataset) -> Scene:
    """The naive release: names removed, nothing else done."""
    protected = run_steps(original, steps=(), rng=Rng(0), order="kept")
    manifest = {"columns": {}, "steps": [done.public() for done in protected.done], "rows": protected.data.rows}
    release = Release(table=protected.data.table, manifest=manifest)
    return Scene(original=original, release=release, lineage=protected.lineage)


def _opened(release: Release | str | Path, lineage: Lineage | str | Path | None) -> tuple[Release, Lineage | None]:
    made = release if isinstance(release, Release) else load_release(release)
    if isinstance(lineage, str | Path):
        found = load_lineage(Path(lineage))
        if found is None:
            raise BadParameter(f"{lineage} is not a row map.", fix="It is `lineage.parquet` in the private folder.")
        return made, found
    if lineage is None and not isinstance(release, Release):
        return made, load_lineage(Path(release))
    return made, lineage


def _dataset(original: Any, release: Release, schema: Schema | None, knows: Sequence[str] | None) -> Dataset:
    table = read(original) if not isinstance(original, Dataset) else original.table
    if isinstance(original, Dataset):
        return original
    if schema is None:
        declared = release.manifest.get("recipe", {}).get("columns") or {
            name: {"role": "quasi"} for name in knows or ()
        }
        schema = Schema(columns={name: Column.model_validate(value) for name, value in declared.items()})
    return Dataset.of(table, schema)


def _attack(item: Attack | str) -> Attack:
    part = registry("attack").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Attack)
    return part


def _measure(item: Measure | str) -> Measure:
    part = registry("measure").get(item).build() if isinstance(item, str) else item
    assert isinstance(part, Measure)
    return part


def _default_measures() -> list[Measure]:
    return [_measure(name) for name in DEFAULT_MEASURES]


def _riskiest(outcomes: Sequence[Outcome | NotApplicable], count: int = 10) -> tuple[int, ...]:
    """Row numbers (from 1) of the people whom the identity attacks found most clearly."""
    found = [
        (entry["confidence"], entry["row"])
        for outcome in outcomes
        if isinstance(outcome, Outcome) and str(outcome.discloses) == "identity"
        for entry in outcome.riskiest(count)
    ]
    rows = dict.fromkeys(row for _, row in sorted(found, key=lambda item: (-item[0], item[1])))
    return tuple(int(row) + 1 for row in np.array(list(rows), dtype=np.int64)[:count])


def _versions() -> dict[str, str]:
    versions = {"tacit": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
