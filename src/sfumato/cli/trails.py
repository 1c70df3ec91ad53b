"""Trails of people over several sites: match, measure, and choose visits to suppress."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    import polars as pl

PERSON = "researcher"


site_option = click.option("--site", default="site", show_default=True, help="Column with the site of a visit.")
row_option = click.option("--row", default="sample", show_default=True, help="Column that tells whose visit it is.")
k_option = click.option("-k", "--k", type=click.IntRange(min=2), required=True, help="Rows that must share a trail.")


@click.group("trails")
def command() -> None:
    """Trails: the set of sites that a person visited links lists that share no other column.

    Files have one line per visit, with a column for the site and one for the person or the sample.
    """


@command.command("attack")
@click.argument("identified", type=typed_path)
@click.argument("samples", type=typed_path)
@click.option("--person", default="name", show_default=True, help="Column of IDENTIFIED that names people.")
@row_option
@site_option
@click.option("--incomplete", is_flag=True, help="SAMPLES may lack visits that IDENTIFIED has.")
@click.option("--out", type=typed_path, default=None, help="File for the links.")
@force_option
@json_option
def attack(
    identified: Path, samples: Path, person: str, row: str, site: str, incomplete: bool, out: Path | None,
    force: bool, as_json: bool,
) -> int:  # fmt: skip
    """Link people of IDENTIFIED with rows of SAMPLES by their trails.

    The exit code is 1 if at least one row is linked.
    """
    import polars as pl

    from sfumato.data import Table, write
    from sfumato.parties.trails import TrailTable, match_trails

    people, found = _visits(identified, person, site), _visits(samples, row, site)
    sites = [*people["site"], *found["site"]]
    one, other = (TrailTable.of(list(f["row"]), list(f["site"]), all_sites=sites) for f in (people, found))
    pairs = match_trails(one.visits, other.visits, complete=not incomplete).pairs
    if out is not None:
        columns = {person: [one.rows[i] for i, _ in pairs], row: [other.rows[j] for _, j in pairs]}
        write(Table(frame=pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))), out, force=force)
    counts = {"people": len(one.rows), "samples": len(other.rows), "sites": len(one.sites), "linked": len(pairs)}
    if as_json:
        emit_json(counts)
    else:
        click.echo(f"{len(pairs):,} of {len(other.rows):,} samples are linked to one of {len(one.rows):,} people.")
    return 1 if pairs else 0


@command.command("measure")
@click.argument("samples", type=typed_path)
@row_option
@site_option
@k_option
@json_option
def measure(samples: Path, row: str, site: str, k: int, as_json: bool) -> int:
    """Share of the rows of SAMPLES whose trail fewer than k rows have; the exit code is 1 if there is one."""
    from sfumato.parties.trails import TrailTable, rare_trails

    visits = _visits(samples, row, site)
    table = TrailTable.of(list(visits["row"]), list(visits["site"]))
    unique, rare = rare_trails(table.visits, k=2), rare_trails(table.visits, k=k)
    if as_json:
        emit_json({"samples": len(table.rows), "sites": len(table.sites), "k": k, "unique": unique, "rare": rare})
    else:
        click.echo(f"{len(table.rows):,} samples at {len(table.sites)} sites.")
        click.echo(f"{unique:.1%} have a trail of their own, {rare:.1%} one that fewer than {k} have.")
    return 1 if rare else 0


@command.command("suppress")
@click.argument("samples", type=typed_path)
@row_option
@site_option
@k_option
@click.option("--out", type=typed_path, required=True, help="File for the visits that remain.")
@force_option
@json_option
def suppress(samples: Path, row: str, site: str, k: int, out: Path, force: bool, as_json: bool) -> None:
    """Leave out visits of SAMPLES so that at least k rows share every trail that remains."""
    import polars as pl

    from sfumato.data import read, write
    from sfumato.parties.trails import TrailTable, suppress_visits

    visits = _visits(samples, row, site)
    table = TrailTable.of(list(visits["row"]), list(visits["site"]))
    kept = suppress_visits(table.visits, k=k)
    rows = {name: index for index, name in enumerate(table.rows)}
    sites = {name: index for index, name in enumerate(table.sites)}
    stays = [bool(kept.visits[rows[one], sites[at]]) for one, at in zip(visits["row"], visits["site"], strict=True)]
    if not any(stays):
        from sfumato.errors import TooFewRows

        raise TooFewRows(f"No {k} rows of {samples} share a site; nothing would remain.", fix="Use a smaller k.")
    given = read(samples)
    whole = given.frame.drop_nulls([row, site])
    write(given.with_frame(whole.filter(pl.Series(stays, dtype=pl.Boolean))), out, force=force)
    total = int(table.visits.sum())
    counts = {"samples": len(rows), "visits": total, "suppressed": kept.suppressed, "samples_lost": kept.rows_lost}
    if as_json:
        emit_json({"k": k, **counts})
        return
    click.echo(f"{kept.suppressed:,} of {total:,} visits are left out, {kept.rows_lost:,} samples with all of theirs.")
    note(f"{out}: {sum(stays):,} lines. Other columns are unchanged; protect them with `sfumato protect`.")


def _visits(path: Path, row: str, site: str) -> pl.DataFrame:
    import polars as pl

    from sfumato.data import read
    from sfumato.errors import BadParameter

    if row == site:
        raise BadParameter("the column of sites and the column of rows must differ.")
    table = read(path)
    columns = {"row": table.column(row), "site": table.column(site)}
    return pl.DataFrame({name: column.cast(pl.String) for name, column in columns.items()}).drop_nulls()
