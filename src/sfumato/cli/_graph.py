"""What the commands do with recipes and releases of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import emit_json, note, progress

__all__ = [
    "attack_graph",
    "check_graph",
    "init_graph",
    "measure_graph",
    "protect_graph",
    "refuse_options",
    "report_graph",
]


def refuse_options(options: dict[str, Any]) -> None:
    """Refuse options that mean nothing for graphs, instead of ignoring them."""
    given = [name for name, value in options.items() if value not in (None, (), False)]
    if given:
        raise click.UsageError(f"{given[0]} is for tables, and this is a graph.")


def protect_graph(recipe: Path, out: Path, *, unmet: bool, force: bool, as_json: bool, **options: Any) -> int:
    """Run a recipe for a graph and write the release."""
    from sfumato.api.graph import protect_graph_recipe
    from sfumato.release.folder import private_folder, refuse_existing

    refuse_existing(out, force=force)
    protection = protect_graph_recipe(recipe, progress=progress(quiet=as_json), **options)
    if protection.unmet and not unmet and not as_json:
        _print(protection.to_dict())
    document = protection.save(out, force=force, unmet=unmet)
    if as_json:
        emit_json(document)
    else:
        _print(document)
        note("\n" + protection.evaluation.judgement.standing.line(f"{out}/"))
        note(f"Keep private:  {private_folder(out)}/  (internal report with pictures, node map, recipe, key)")
    return 0 if not protection.unmet else 1


def _print(document: dict[str, Any]) -> None:
    from sfumato.reports.terminal import print_protection

    print_protection(document)


def check_graph(release: Path, original: str | None, *, as_json: bool) -> int:
    """Check the models of a released graph."""
    from sfumato.api.graph import check_graph_release

    results = check_graph_release(release, original=original)
    if not results:
        note("No privacy model is named, so nothing was checked. Name models in the recipe.")
    if as_json:
        emit_json({"release": str(release), **results.to_dict()})
    else:
        from rich.console import Console

        from sfumato.reports.terminal import verdict_lines

        Console().print(verdict_lines(results.entries()))
    return 0 if results.holds else 1


def attack_graph(release: Path, original: str | None, *, as_json: bool, **options: Any) -> int:
    """Attack a released graph."""
    from sfumato.api.graph import attack_graph_release

    if original is None:
        raise click.UsageError("Pass --original RECIPE: the recipe that names the original edge and node tables.")
    results = attack_graph_release(release, original=original, progress=progress(quiet=as_json), **options)
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_attacks

        print_attacks(document["attacks"], document["limits"])
    return 0 if results.met else 1


def measure_graph(release: Path, original: str, *, as_json: bool, **options: Any) -> None:
    """Measure a released graph."""
    from sfumato.api.graph import measure_graph_release

    document = measure_graph_release(release, original=original, progress=progress(quiet=as_json), **options).to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_measures

        print_measures(document["measures"])


def report_graph(release: Path, out: Path, *, internal: bool, force: bool, as_json: bool) -> None:
    """Write the report of a released graph."""
    from sfumato.api.graph import load_graph_report
    from sfumato.data.atomic import replacing
    from sfumato.reports.graph_page import external_document, graph_html

    document = load_graph_report(release)
    if as_json:
        emit_json(document if internal else external_document(document))
        return
    with replacing(out, force=force) as temporary:
        temporary.write_text(graph_html(document, internal=internal), encoding="utf-8")
    click.echo(f"Report: {out.resolve()}")


def init_graph(
    nodes: str | None, edges: tuple[str, ...], out: Path, *, k: int | None, force: bool, as_json: bool
) -> None:
    """Read the tables of a graph and write a recipe for it."""
    from sfumato.data import replacing
    from sfumato.data.yaml_documents import yaml_flow, yaml_scalar
    from sfumato.graphs.read_graph import Relations, edge_table, graph_from_tables
    from sfumato.graphs.signatures import colours, unique_share

    if k is None:
        raise click.UsageError("--k is required for a graph: the number of people who share a degree, at least.")
    tables = [edge_table(edge) for edge in edges]
    extra = list(dict.fromkeys(name for table in tables for name in table.columns[2:]))
    relations: Relations | None = "merge" if len(tables) > 1 else None
    graph = graph_from_tables(tables, nodes=nodes, relations=relations, edge_columns=dict.fromkeys(extra, "drop"))
    lines = ["sfumato: 1", "graph:", f"  edges: {yaml_flow([_beside(edge, out) for edge in edges])}"]
    if relations:
        lines += ["  relations: merge  # keep: also release by which of the tables two people are linked"]
    if extra:
        lines += ["  edge_columns:  # drop, keep, {bands: [5, 20]} for numbers, {dates: year} for dates"]
        lines += [f"    {yaml_scalar(name)}: drop" for name in extra]
    table = False
    if nodes is not None:
        lines += [f"  nodes: {yaml_scalar(_beside(nodes, out))}", f"  key: {yaml_scalar(graph.nodes.columns[0])}"]
        columns, table = _columns(graph.nodes.drop(graph.nodes.columns[0]))
        lines += columns
    models, steps = (["k-anonymity"], ["mondrian"]) if table else ([], [])
    lines += [f"models: {yaml_flow([*({name: k} for name in models), {'k-degree-anonymity': k}])}"]
    lines += [f"steps: {yaml_flow([*steps, {'anonymize-degrees': k}])}"]
    lines += ["# attacks and measures: all that fit, unless some are listed", "# limits: {risk: 0.09, link: 0.2}"]
    with replacing(out, force=force) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    unique = {name: unique_share(colours(graph, depth)) for depth, name in enumerate(_KNOWN)}
    if as_json:
        emit_json({"recipe": str(out), "nodes": graph.size, "edges": graph.edge_count, "unique": unique})
        return
    click.echo(f"{graph.size:,} nodes, {graph.edge_count:,} edges")
    for name, share in unique.items():
        click.echo(f"  unique by {name:<20} {share:>6.1%}")
    note(f"Written: {out}. Review it, then:  sfumato protect {out}")


_KNOWN = ("degree", "neighbours' degrees", "two hops")


def _columns(frame: Any) -> tuple[list[str], bool]:
    """Proposed roles of the node table's columns, each with its reason, and whether there are quasi-identifiers."""
    from sfumato.data.yaml_documents import yaml_scalar
    from sfumato.dataset import Role
    from sfumato.profiling import propose

    if not frame.width:
        return [], False
    proposal = propose(frame)
    lines = ["columns:"] + [
        f"  {yaml_scalar(column.name)}: {column.role.value}  # {' '.join(column.reason.split())}"
        for column in proposal.columns
    ]
    return lines, any(column.role is Role.QUASI for column in proposal.columns)


def _beside(file: str, out: Path) -> str:
    import os

    return file if "://" in file else Path(os.path.relpath(file, out.parent)).as_posix()
