"""Protect: run a recipe, attack what comes out, measure it, and keep the account. Only ``save`` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato import __version__
from sfumato.api.column_attribution import column_attribution
from sfumato.api.evaluate import attack_scenario, attack_to_dict, default_measures, measure_pair
from sfumato.api.limits import judge_limits
from sfumato.api.results import as_text
from sfumato.api.versions import versions
from sfumato.attacks import AttackScenario, Outcome, default_attacks
from sfumato.data import read, to_native
from sfumato.data.atomic import replacing_folder
from sfumato.data.url import file_and_options, is_url
from sfumato.errors import BadParameter, NotApplicable, PolicyNotMet, Unmet
from sfumato.masking.pipeline import MaskingResult
from sfumato.masking.pipeline import protect as run_steps
from sfumato.measures.base import ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release, Verdict
from sfumato.release.folder import MANIFEST, PRIVATE, private_folder, refuse_existing, write_lineage, write_release
from sfumato.reports import ReportData, column_pictures, report_json, write_report
from sfumato.reports.terminal import print_protection
from sfumato.rng import Rng
from sfumato.schema import Dataset

__all__ = ["Protection", "manifest_of", "protect", "source_of", "title_of"]


@dataclass(frozen=True, kw_only=True, repr=False)
class Protection:
    """What ``protect`` made: the release that may leave, and what its owner must keep."""

    recipe: Recipe
    original: Dataset
    protected: MaskingResult
    release: Release
    account: ReportData

    def __repr__(self) -> str:
        """What was done and found, as the command line prints it; a table of people is not shown."""
        return as_text(lambda console: print_protection(self.to_dict(), console))

    @property
    def lineage(self) -> Lineage:
        """The secret row map."""
        return self.protected.lineage

    @property
    def data(self) -> Any:
        """The masked table in the caller's own type: pandas, Polars or Arrow."""
        return to_native(self.release.table)

    @property
    def unmet(self) -> tuple[str, ...]:
        """In words, every model that does not hold and every limit that is exceeded."""
        words = [
            f"{verdict.model} {verdict.state}" + (f": {verdict.reason.rstrip('.')}" if verdict.reason else "")
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
        that ``sfumato protect --json`` prints.
        """
        target = Path(folder)
        if self.unmet and not unmet:
            kind = PolicyNotMet if self.protected.holds else Unmet
            raise kind(
                "The release is not written: " + "; ".join(self.unmet) + ".",
                fix="Change the recipe, or ask for it all the same with --unmet.",
                document=self.to_dict(),
            )
        refuse_existing(target, force=force)
        with ExitStack() as stack:
            private = stack.enter_context(replacing_folder(private_folder(target), force=force, marker=PRIVATE))
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
            (private / PRIVATE).write_text(report_json(told, "internal") + "\n", encoding="utf-8")
            (private / "recipe.yaml").write_text(self.recipe.to_yaml(), encoding="utf-8")
        return self.to_dict(target, manifest)

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What happened, for the owner, as plain data."""
        files = (manifest or {}).get("files", {})
        data = next((digest for name, digest in files.items() if name.startswith("data.")), None)
        return {
            "release": f"{folder}/" if folder is not None else None,
            "private": f"{private_folder(folder)}/" if folder is not None else None,
            "rows": self.release.table.rows,
            "original_rows": self.original.rows,
            "undeclared": [name for name in self.release.table.columns if name not in self.recipe.schema.columns],
            "steps": [step.private() for step in self.protected.steps],
            "verdicts": [verdict.to_dict() for verdict in self.protected.verdicts],
            "attacks_before": list(self.account.attacks_before),
            "attacks": list(self.account.attacks),
            "measures": list(self.account.measures),
            "limits": list(self.account.limits),
            "advice": [item.to_dict() for item in self.account.advice],
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
    source, options = source_of(made, data)
    table = read(source, **options)
    rng = Rng(seed if seed is not None else made.seed)
    original = Dataset.of(table, made.schema)
    protected = run_steps(original, steps=made.steps, models=made.models, rng=rng, order=made.order, progress=progress)
    released = protected.data.table
    manifest = manifest_of(
        made,
        columns=released.columns,
        rows=released.rows,
        steps=[step.public() for step in protected.steps],
        verdicts=protected.verdicts,
    )
    release = Release(table=released, manifest=manifest)
    scenario = AttackScenario(original=original, release=release, lineage=protected.lineage)
    attacks = made.attacks or default_attacks(scenario)
    after = attack_scenario(scenario, attacks, rng=rng, tries=tries, progress=progress)
    limits = judge_limits(made.limits, after)
    after = column_attribution(scenario, attacks, after, limits, rng=rng, progress=progress)
    before = attack_scenario(_unprotected(original), attacks, rng=rng, tries=tries, progress=progress)
    pair = ReleasePair(original=original, release=release, lineage=protected.lineage)
    found = measure_pair(pair, made.measures or default_measures(), rng=rng, progress=progress)
    account = ReportData(
        title=title_of(made),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        manifest=release.manifest,
        files={},
        recipe_public=made.public(),
        recipe=made.to_dict(),
        original_rows=original.rows,
        original_columns=original.table.columns,
        outcomes=tuple(step.private() for step in protected.steps),
        verdicts=tuple(verdict.to_dict() for verdict in protected.verdicts),
        attacks_before=tuple(attack_to_dict(item) for item in before),
        attacks=tuple(attack_to_dict(item) for item in after),
        measures=tuple(item.to_dict() for item in found),
        columns=tuple(column_pictures(original.table, release.table, release.manifest)),
        limits=tuple(limits),
        riskiest=_riskiest(after),
    )
    return Protection(recipe=made, original=original, protected=protected, release=release, account=account)


def _recipe(recipe: Recipe | str | Path | Mapping[str, Any]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if isinstance(recipe, Mapping):
        return Recipe.parse(recipe)
    if not isinstance(recipe, str | Path):
        raise BadParameter(
            f"An object of type {type(recipe).__name__} is no recipe.",
            fix="The recipe comes first, then the data: give a path, YAML text, a mapping or a Recipe."
            " sfumato.propose(data).recipe(k=5) makes one.",
        )
    return Recipe.parse(recipe) if isinstance(recipe, str) and "\n" in recipe else Recipe.load(recipe)


def source_of(recipe: Recipe, data: Any) -> tuple[Any, dict[str, Any]]:
    """What to read, and the options of its format: those of the recipe hold for the next file of the same kind, too."""
    if data is None and recipe.source is None:
        raise BadParameter("The recipe names no data and none was given.", fix="Add `data:` to it, or name a file.")
    if data is None:
        assert recipe.source is not None
        return recipe.source.location, dict(recipe.source.options)
    if isinstance(data, str | Path) and recipe.source is not None and _alike(data, recipe.source.location):
        return data, {**recipe.source.options, **file_and_options(data)[1]}
    return data, {}


def _alike(one: str | Path, other: str) -> bool:
    """Whether two places are files of the same format, so that options of one fit the other."""
    return Path(file_and_options(one)[0]).suffix.lower() == Path(other).suffix.lower() and not is_url(str(one))


def title_of(recipe: Recipe) -> str:
    """What the report is called: the recipe's title, or the name of its data."""
    return recipe.title or "Release of " + (Path(recipe.source.location).stem if recipe.source else "a table")


def manifest_of(
    recipe: Recipe,
    *,
    columns: Sequence[str],
    rows: int,
    steps: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict],
) -> dict[str, Any]:
    """The public manifest of a release: how it was made and what holds, and nothing counted on the original."""
    public = recipe.public()
    return {
        "sfumato": __version__,
        "recipe": public,
        "columns": {name: column for name, column in public["columns"].items() if name in columns},
        "models": public["models"],
        "steps": list(steps),
        "verdicts": [{"model": v.model, "state": str(v.state), "wanted": v.wanted} for v in verdicts],
        "order": recipe.order,
        "rows": rows,
    }


def _unprotected(original: Dataset) -> AttackScenario:
    """The naive release: names removed, nothing else done."""
    protected = run_steps(original, steps=(), rng=Rng(0), order="kept")
    manifest = {"columns": {}, "steps": [step.public() for step in protected.steps], "rows": protected.data.rows}
    release = Release(table=protected.data.table, manifest=manifest)
    return AttackScenario(original=original, release=release, lineage=protected.lineage)


def _riskiest(outcomes: Sequence[Outcome | NotApplicable], count: int = 10) -> tuple[int, ...]:
    """Row numbers (from 1) of the people whom the identity attacks found most clearly.

    A find counts by the attack's own confidence and by how often the attack is right when it says something, so that
    people whom several attacks find stand before those whom one found by chance.
    """
    score: dict[int, float] = {}
    for outcome in outcomes:
        if isinstance(outcome, Outcome) and str(outcome.discloses) == "identity" and outcome.claims:
            trust = outcome.main.hits / outcome.claims
            for row, confidence in zip(outcome.rows[outcome.hit], outcome.confidence[outcome.hit], strict=True):
                score[int(row)] = score.get(int(row), 0.0) + trust * float(confidence)
    return tuple(row + 1 for row in sorted(score, key=lambda row: (-score[row], row))[:count])
