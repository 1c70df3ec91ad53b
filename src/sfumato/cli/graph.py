"""Publish statistics of a social graph with differential privacy: edges, degrees, triangles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import NUMBER, emit_json, force_option, json_option, note, typed_path


@click.group("graph")
def command() -> None:
    """Social graphs. A graph is released by `sfumato protect` and a recipe with a key `graph`."""


@command.command("summarize")
@click.argument("recipe", type=typed_path)
@click.option(
    "--protect",
    type=click.Choice(["edges", "nodes"]),
    required=True,
    help="Privacy unit: one friendship, or one person with all their friendships.",
)
@click.option("--epsilon", type=NUMBER, required=True, help="Privacy loss of all statistics together.")
@click.option("--ledger", required=True, help="Ledger that is charged: a SQLite file or a postgresql:// address.")
@click.option("--dataset", required=True, help="Data set of the ledger whose budget is charged.")
@click.option(
    "--statistic",
    "statistics",
    type=click.Choice(["edges", "degrees", "triangles"]),
    multiple=True,
    help="A statistic; may be repeated. Default: all for which the bounds are given.",
)
@click.option("--max-degree", type=click.IntRange(min=1), default=None, help="For nodes: friends counted per person.")
@click.option("--max-triangles", type=click.IntRange(min=1), default=None, help="For nodes: triangles per person.")
@click.option("--out", type=typed_path, required=True, help="Folder for counts.csv, degrees.csv and statistics.json.")
@force_option
@json_option
def summarize(recipe: Path, ledger: str, out: Path, force: bool, as_json: bool, **options: Any) -> None:
    """Publish the number of edges, the degree distribution and the number of triangles with differential privacy.

    RECIPE names the edge tables and the node table under `graph`. The budget is set once by `sfumato ledger cap`;
    everything that can be refused is refused before it is charged. Every run is charged.
    """
    from sfumato.api.graph import summarize_graph
    from sfumato.cli.ledger import existing_ledger
    from sfumato.ledger.ledger import Ledger
    from sfumato.release.public_folder import paid, public_folder

    accounts = Ledger.open(existing_ledger(ledger))
    with public_folder(out, promise=True, force=force, marker="statistics.json") as folder:
        done = summarize_graph(recipe, ledger=accounts, **options)
        folder.table("counts.csv", paid(done.counts))
        if done.degrees is not None:
            folder.table("degrees.csv", paid(done.degrees))
        folder.json("statistics.json", {key: paid(value) for key, value in done.to_dict().items()})
    if as_json:
        emit_json({"statistics": str(out), **done.to_dict()})
        return
    for row in done.counts.iter_rows(named=True):
        width = "" if row["noise_95"] is None else f"   (± {row['noise_95']:,} with 95 % confidence)"
        click.echo(f"{row['statistic']:<12}{row['value']:>14,}{width}")
    if done.degrees is not None:
        people = done.degrees["people"].to_numpy()
        mean = float((done.degrees["degree"].to_numpy() * people).sum()) / max(int(people.sum()), 1)
        click.echo(f"{'mean degree':<12}{mean:>14,.1f}   (from the noisy degree distribution)")
    click.echo(str(done.guarantee))
    if done.guarantee.unit == "node":
        note("Friendships and triangles beyond the bounds are not counted; bounds must not come from the data.")
    note(f"{out}/ may be published. Charged to `{done.guarantee.dataset}` in {ledger}.")
