"""Protect a file that does not fit into memory: an engine does the work, and the risk is computed on the whole file."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.api.protect import manifest_of, source_of, title_of
from sfumato.api.versions import versions
from sfumato.data import scan
from sfumato.data.atomic import replacing_folder, sha256
from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import PolicyNotMet, Unmet
from sfumato.masking.out_of_core import ProtectedFile, protect_file
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Limits, Recipe
from sfumato.release.folder import MANIFEST, PRIVATE, private_folder, refuse_existing, write_manifest
from sfumato.reports import ReportData, report_json, write_report
from sfumato.rng import Rng
from sfumato.schema import Role

__all__ = ["protect_large"]


def protect_large(
    recipe: Recipe,
    folder: str | Path,
    *,
    data: str | None = None,
    engine: str = "duckdb",
    memory: str = "4GB",
    suffix: str = ".parquet",
    seed: int | None = None,
    force: bool = False,
    unmet: bool = False,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Run a recipe's generalization on a file of any size and write the release folder and the private one beside it.

    Linkage is not sampled but computed: an intruder who knows all quasi-identifiers of somebody in the release and
    picks one of the rows that fit is right with probability 1 / class size, so the expected share found is the number
    of classes over the number of rows. Other attacks need the row map, which is not made for files of this size.
    """
    target = Path(folder)
    source, options = source_of(recipe, data)
    refuse_existing(target, force=force)
    with ExitStack() as stack:
        private = stack.enter_context(replacing_folder(private_folder(target), force=force, marker=PRIVATE))
        public = stack.enter_context(replacing_folder(target, force=force, marker=MANIFEST))
        private.chmod(0o700)
        done = protect_file(
            schema=recipe.schema,
            steps=recipe.steps,
            models=recipe.models,
            source=source,
            options=options,
            target=public / f"data{suffix}",
            rng=Rng(seed if seed is not None else recipe.seed),
            engine=engine,
            order=recipe.order,
            memory=memory,
            progress=progress,
        )
        sizes = _class_sizes(done, recipe)
        limits = _limits(recipe.limits, sizes)
        released = list(scan(done.path).columns)
        undeclared = [name for name in released if name not in recipe.schema.columns]
        document = _document(done, sizes, limits, target, undeclared)
        failed = [f"{v.model} {v.state}" for v in done.verdicts if not v.holds]
        failed += [f"limit of {entry['limit']} {entry['wanted']}" for entry in limits if not entry["met"]]
        if failed and not unmet:
            raise (PolicyNotMet if done.holds else Unmet)(
                "The release is not written: " + "; ".join(failed) + ".",
                fix="Change the recipe, or ask for it all the same with --unmet.",
                document={**document, "release": None, "private": None},
            )
        account = _account(recipe, done, released, document)
        told = replace(account, files={done.path.name: sha256(done.path)})
        write_report(told, public / "report.html", audience="external")
        (public / PRIVATE).write_text(report_json(told, "external") + "\n", encoding="utf-8")
        manifest = write_manifest(public, account.manifest)
        told = replace(told, files=manifest["files"])
        write_report(told, private / "report.html", audience="internal")
        (private / PRIVATE).write_text(report_json(told, "internal") + "\n", encoding="utf-8")
        (private / "recipe.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    return {**document, "sha256": manifest["files"][done.path.name], "files": manifest["files"]}


def _class_sizes(done: ProtectedFile, recipe: Recipe) -> dict[str, float]:
    """Classes, rows and the smallest class of the written file, by one GROUP BY of its own.

    Rows that show ``*`` in every quasi-identifier are suppressed and form no class, unless all do.
    """
    found = scan(done.path)
    quasi = [quoted_name(name) for name in recipe.schema.names(Role.QUASI)]
    hidden = " AND ".join(f"CAST({name} AS VARCHAR) IS NOT DISTINCT FROM '*'" for name in quasi)
    statement = (
        "SELECT count(*), coalesce(sum(n), 0), coalesce(min(n), 0), coalesce(sum(n) FILTER (n = 1), 0) FROM "
        f"(SELECT count(*) AS n, {hidden} AS hidden FROM {found.expression} GROUP BY {', '.join(quasi)} "
        "QUALIFY NOT hidden OR count(*) OVER () = 1)"
    )
    with found.connect() as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    return dict(zip(("classes", "rows", "smallest", "alone"), map(float, row), strict=True))


def _limits(limits: Limits, sizes: Mapping[str, float]) -> list[dict[str, Any]]:
    risk = sizes["classes"] / sizes["rows"] if sizes["rows"] else None
    judged = []
    for name, wanted in limits.items().items():
        value = risk if name == "risk" else None
        met = value is not None and value <= wanted
        judged.append(
            {
                "limit": name,
                "wanted": wanted,
                "value": value,
                "met": met,
                "attack": None if value is None else "linkage",
            }
        )
    return judged


def _document(
    done: ProtectedFile, sizes: Mapping[str, float], limits: list[dict[str, Any]], target: Path, undeclared: list[str]
) -> dict[str, Any]:
    rows = sizes["rows"]
    # Without rows there is nothing to attack or to count, which is not a risk of 0.
    risk = sizes["classes"] / rows if rows else None
    nothing = {} if rows else {"reason": "Every record was left out: the release has no rows."}
    attack = {
        "attack": "linkage",
        "discloses": "identity",
        **dict.fromkeys(("risk", "low", "high"), risk),
        "baseline": 1 / rows if rows else None,
        "control": None,
        "tried": int(rows),
        "truth": "computed: classes over rows of the whole file",
        "threat": "Somebody who knows a person's quasi-identifiers picks one of the released rows that fit.",
        **nothing,
    }
    measures: list[dict[str, Any]] = [
        {"measure": name, "value": value if rows else None, "columns": {}, "low": None, "high": None, **nothing}
        for name, value in (
            ("class-sizes", sizes["smallest"]),
            ("uniqueness", sizes["alone"] / max(rows, 1)),
            ("prosecutor", risk),
        )
    ]
    return {
        "release": f"{target}/",
        "private": f"{private_folder(target)}/",
        "rows": done.rows,
        "undeclared": undeclared,
        "steps": [dict(step) for step in done.private],
        "verdicts": [verdict.to_dict() for verdict in done.verdicts],
        "attacks_before": [],
        "attacks": [attack],
        "measures": measures,
        "limits": limits,
    }


def _account(recipe: Recipe, done: ProtectedFile, released: list[str], document: Mapping[str, Any]) -> ReportData:
    manifest = manifest_of(
        recipe, columns=released, rows=done.rows, steps=[dict(step) for step in done.steps], verdicts=done.verdicts
    )
    return ReportData(
        title=title_of(recipe),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        manifest=manifest,
        files={},
        recipe_public=recipe.public(),
        recipe=recipe.to_dict(),
        verdicts=tuple(document["verdicts"]),
        outcomes=tuple(document["steps"]),
        attacks=tuple(document["attacks"]),
        measures=tuple(document["measures"]),
        limits=tuple(document["limits"]),
    )
