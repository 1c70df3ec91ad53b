"""Propose a recipe for a file: roles, kinds and hierarchies with reasons, and what singles people out."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, typed_path

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.data import Table
    from sfumato.profiling import Combination, Proposal


@click.command("init")
@click.argument("data")
@click.option(
    "--out", type=typed_path, default=Path("sfumato.yaml"), show_default=True, help="The recipe; - prints it."
)
@click.option("--k", type=click.IntRange(min=2), default=None, help="People who must look alike. There is no default.")
@click.option("--preset", default=None, help="Start from a preset: research-file, public-use-file, ema-0070, ...")
@click.option("--query", "for_query", is_flag=True, help="Write the metadata for `sfumato query` instead of a recipe.")
@click.option(
    "--unit", default=None, help="For --query: `row` if each row is another person, or the column that tells."
)
@click.option(
    "--size", type=click.IntRange(1, 4), default=4, show_default=True, help="Columns per combination, at most."
)
@click.option(
    "--rows",
    type=click.IntRange(min=1000),
    default=1_000_000,
    show_default=True,
    help="Rows to look at, at most: the first ones, and others spread over the rest.",
)
@force_option
@json_option
def command(
    data: str,
    out: Path,
    k: int | None,
    preset: str | None,
    for_query: bool,
    unit: str | None,
    size: int,
    rows: int,
    force: bool,
    as_json: bool,
) -> None:
    """Look at DATA (a file or a database URL) and write a commented recipe for it.

    Nothing is decided: each column gets a proposal and its reason, to be read and changed. Without --k the recipe waits
    for you to say how many people must look alike, and `sfumato protect` refuses it until then.
    """
    from urllib.parse import urlsplit

    from sfumato.data import preview, replacing
    from sfumato.errors import OutputExists
    from sfumato.profiling import propose, to_yaml
    from sfumato.recipe.presets import preset_text

    if unit is not None and not for_query:
        raise click.UsageError("--unit goes with --query.")
    if k is not None and preset is not None:
        raise click.UsageError("A preset says how many people must look alike: give --k or --preset, not both.")
    start = preset_text(preset) if preset is not None else None
    printed = str(out) == "-"
    if not printed and out.exists() and not force:
        raise OutputExists(f"{out} exists already.", fix="Choose another name with --out, or allow it with --force.")
    found = preview(data, most=rows)
    if found.partial:
        note(f"{found.table.rows} of {found.rows} rows are looked at: the first ones, and others spread over the rest.")
    if for_query:
        _write_metadata(found.table, data, out, unit=unit, force=force, as_json=as_json)
        return
    proposal = propose(found.table, whole=found.rows, progress=progress(quiet=as_json), max_size=size)
    text = to_yaml(proposal, _from_recipe(data, out), k=k, preset=start)
    if printed:
        click.echo(text, nl=False)
    else:
        with replacing(out, force=force) as temporary:
            temporary.write_text(text, encoding="utf-8")
    if as_json and not printed:
        emit_json({"recipe": str(out), **proposal.to_dict()})
    elif not printed:
        from rich.console import Console

        _show(proposal, Console())
        note(f"\nWritten: {out}. Read it, change what is wrong, then: sfumato protect {out}")
        if "://" in data and urlsplit(data).password:
            note(
                "It names the password of the database. Take it out: PostgreSQL's PGPASSWORD or ~/.pgpass can hold it."
            )
        if k is None and preset is None:
            note("It does not say yet how many people must look alike: fill in k, or run this again with --k.")


def _write_metadata(table: Table, data: str, out: Path, *, unit: str | None, force: bool, as_json: bool) -> None:
    """What private answers need to know of a table; bounds and values are left to its owner."""
    from sfumato.data import replacing
    from sfumato.query.metadata import propose as propose_metadata

    place, name = _askable(data, out)
    text = propose_metadata(table, data=place, dataset=name, unit=unit)
    if str(out) == "-":
        click.echo(text, nl=False)
        return
    with replacing(out, force=force) as temporary:
        temporary.write_text(text, encoding="utf-8")
    if as_json:
        emit_json({"metadata": str(out)})
        return
    ledger = out.parent / f"{name}-ledger.db"
    if unit is None:
        note(f"Written: {out}. Say in it whom a row is about: fill in `unit`, or run this again with --unit.")
    else:
        note(f"Written: {out}.")
    note("Declare what values are possible (`domain`) where sums are asked for or groups are known. Then:")
    note(f"  sfumato ledger cap {_word(str(ledger))} --dataset {name} --epsilon ...      # the budget, once")
    question = f"'SELECT COUNT(*) FROM {name}'"
    note(f"  sfumato query {_word(str(out))} {question} --epsilon ...      # with --explain it is free")


def _askable(data: str, out: Path) -> tuple[str, str]:
    """How metadata name the table, and a name that SQL reads without quotes; what cannot be asked is refused."""
    from sfumato.data.url import file_and_options, is_url, parse_url
    from sfumato.engines.choice import is_address, without_password
    from sfumato.errors import NotThatFormat, UnknownFormat

    if is_address(data):
        table = parse_url(data).table
        if table is None:
            raise UnknownFormat("Questions are asked of a table, not of a query.", fix="Name it: ...?table=NAME.")
        return f"{without_password(data)}#{table}", _name(table.rpartition(".")[2])
    path, options = file_and_options(data)
    if is_url(data) or options or not _read_by_engines(Path(path)):
        copy = f"{Path(path).stem}.parquet"
        raise NotThatFormat(
            "Private questions are answered from Parquet files, from plain CSV files (UTF-8, commas, decimal points)"
            f" and from PostgreSQL; {Path(path).name} is none of these.",
            fix=f"Make a copy: python -c \"import sfumato; sfumato.write(sfumato.read('{data}'), '{copy}')\"",
        )
    return _from_recipe(data, out), _name(Path(path).stem)


def _read_by_engines(path: Path) -> bool:
    from sfumato.data.formats.csv import MISSING
    from sfumato.data.text_files import decode, sniff

    mark = {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower())
    if mark is None:
        return path.suffix.lower() == ".parquet"
    with path.open("rb") as file:
        head = file.read(1 << 20)
    whole = head[: head.rfind(b"\n") + 1 or len(head)]
    if decode(whole) != "utf-8":
        return False
    found = sniff(whole, delimiter=None, header=None, missing=MISSING, name=path.name)
    return found.header and (found.delimiter == mark or len(found.names) == 1)


def _name(text: str) -> str:
    """Letters, digits and underscores, so that SQL needs no quotes."""
    plain = re.sub(r"\W+", "_", text).strip("_").lower() or "data"
    return plain if plain[0].isalpha() else f"t_{plain}"


def _word(text: str) -> str:
    """A path as a shell reads it back."""
    import shlex

    return shlex.quote(text)


def _from_recipe(data: str, out: Path) -> str:
    """The path of the data as seen from the recipe's folder, so that both can move together."""
    if "://" in data or data == "-" or str(out) == "-":
        return data
    return Path(os.path.relpath(data, out.parent)).as_posix()


def _show(proposal: Proposal, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    colors = {"identifier": "red", "quasi": "yellow", "sensitive": "magenta", "plain": "dim"}
    part = f", {proposal.rows} of them looked at" if proposal.rows < proposal.whole else ""
    columns = Table(
        title=f"{proposal.whole} rows{part}", title_justify="left", box=None, header_style="bold", pad_edge=False
    )
    for heading in ("column", "role", "kind", "reason"):
        columns.add_column(heading, no_wrap=heading in ("role", "kind"), overflow="fold")
    for column in proposal.columns:
        role = Text(column.role.value, style=colors.get(column.role.value, ""))
        columns.add_row(Text(column.name), role, column.kind.value, Text(column.reason))
    console.print(columns)
    _show_placeholders(proposal, console)
    rows = Table(title="\nWhat singles people out", title_justify="left", box=None, header_style="bold", pad_edge=False)
    rows.add_column("alone", justify="right")
    rows.add_column("with their values in", overflow="fold")
    rows.add_column("", overflow="fold")
    for combination, remark in _combinations(proposal):
        rows.add_row(f"{combination.unique:.1%}", Text(" + ".join(combination.columns)), remark)
    if rows.row_count:
        console.print(rows)
    if proposal.singling is not None:
        console.print(_how(proposal), style="dim")


def _show_placeholders(proposal: Proposal, console: Console) -> None:
    """Values that seem to mean "no answer", and what the recipe does with them."""
    from rich.table import Table
    from rich.text import Text

    codes = Table(
        title="\nValues that seem to mean that there is no answer", title_justify="left", box=None, header_style="bold",
        pad_edge=False,
    )  # fmt: skip
    for heading in ("column", "values", "rows", "in the recipe", "reason"):
        codes.add_column(heading, justify="right" if heading == "rows" else "left", overflow="fold")
    for column in proposal.columns:
        for found in column.placeholders:
            said = "read as missing" if found.sure else "a comment: review it"
            shown = ", ".join(map(str, found.codes))
            codes.add_row(Text(column.name), Text(shown), str(found.rows), said, Text(found.reason))
    if codes.row_count:
        console.print(codes)


def _combinations(proposal: Proposal) -> list[tuple[Combination, str]]:
    told: list[tuple[Combination, str]] = []
    if proposal.register is not None:
        told.append((proposal.register, "in voter lists and other registers"))
    if proposal.quasi is not None:
        told.append((proposal.quasi, "all quasi-identifiers proposed"))
    if proposal.singling is not None:
        told += [(combination, "smallest that singles out most") for combination in proposal.singling.minimal]
        if not proposal.singling.minimal:
            told += [(combination, f"best of {len(combination.columns)}") for combination in proposal.singling.others]
    return told


def _how(proposal: Proposal) -> str:
    singling = proposal.singling
    assert singling is not None
    text = (
        f"Combinations of up to {singling.size} columns: {singling.examined} looked at, {singling.ruled_out} ruled out"
    )
    if singling.more:
        text += f", {singling.more} more single out at least {singling.threshold:.0%}"
    if singling.sampled:
        text += (
            f"; larger ones were screened on {singling.sampled} rows (±{singling.margin:.0%}); all shown are counted"
        )
    return text + "."
