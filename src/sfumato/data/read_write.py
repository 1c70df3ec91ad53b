"""Data in and out: any file, database address or table object becomes a Table, and goes back as it came."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_origin

import polars as pl

from sfumato.data.atomic import replacing
from sfumato.data.format import Format, format_for
from sfumato.data.missing import plain_numbers
from sfumato.data.table import Table, refuse_duplicates
from sfumato.data.url import file_and_options, is_url, parse_url
from sfumato.errors import BadParameter, EmptyTable, FileMissing, SfumatoError, UnknownFormat, WriteFailed, WrongKind
from sfumato.registry import registry


def read(source: object, *, format: Format | str | None = None, **options: Any) -> Table:  # noqa: A002
    """Read a table from wherever it is.

    ``source`` is a path, a folder of .txt and .md files, ``-`` for CSV on standard input, a database URL (see
    :mod:`sfumato.data.url`), a pandas or Polars frame, a PyArrow table, or anything else with ``__arrow_c_stream__``.
    The format is known by the suffix unless ``format`` (a part or its name) is given; ``options`` are fields of that
    format, which may also follow the path: ``people.xlsx?sheet=2024&skip=2``. A table without rows is refused. NaN is
    read as a missing value and -0.0 as 0.0.
    """
    if isinstance(source, str | Path):
        text = str(source)
        table = from_url(text) if is_url(text) else _from_stdin(format, options) if text == "-" else None
        if table is None:
            path, told = file_and_options(source)
            table = _from_file(Path(path), format, {**told, **options})
    else:
        table = _from_object(source)
    if table.rows == 0:
        raise EmptyTable("The table has columns but no rows.", fix="Check the file, table or query.")
    refuse_duplicates(table.columns)
    frame = plain_numbers(table.frame)
    return table if frame is table.frame else replace(table, frame=frame)


def write(table: Table, path: str | Path, *, force: bool = False, format: Format | str | None = None) -> None:  # noqa: A002
    """Write a table in the format of the path's suffix; ``-`` is CSV on standard output.

    The file appears whole or not at all. An existing file is refused unless ``force``.
    """
    if str(path) == "-":
        _to_stdout(table, format)
        return
    place = Path(path)
    part = format_of(place, format, {})
    with replacing(place, force=force) as temporary:
        try:
            part.write(table, temporary)
        except (SfumatoError, OSError):
            raise
        except Exception as failure:
            # Words of a library may quote data, so only the kind of failure is told.
            raise WriteFailed(
                f"{place} could not be written ({type(failure).__name__}). Nothing was changed.",
                fix="Check the free space, or write another format.",
                path=str(place),
            ) from None


def to_native(table: Table) -> object:
    """The table as the type the caller handed in: pandas, Polars (eager or lazy) or Arrow; files come as Polars."""
    match table.origin:
        case "pandas":
            return table.frame.to_pandas()
        case "arrow":
            return table.frame.to_arrow()
        case "polars-lazy":
            return table.frame.lazy()
        case _:
            return table.frame


def format_of(path: Path, chosen: Format | str | None, options: dict[str, Any]) -> Format:
    """The format of a file with its options: the one chosen, or the one that its name says."""
    if isinstance(chosen, Format):
        return type(chosen).build({**chosen.model_dump(), **options}) if options else chosen
    kind = registry("format").get(chosen) if chosen is not None else format_for(path)
    # one word where a list belongs, as in people.csv?missing=-9
    several = {name for name, field in kind.model_fields.items() if get_origin(field.annotation) is tuple}
    listed = {name: [value] if name in several and isinstance(value, str) else value for name, value in options.items()}
    part = kind.build(listed)
    assert isinstance(part, Format)
    return part


def _from_folder(path: Path, options: dict[str, object]) -> Table:
    """A folder of texts; the option ``people`` is a table in it or beside it that says who each file is about."""
    from sfumato.data.text_folder import read_text_folder

    unknown = sorted(set(options) - {"people"})
    if unknown:
        raise BadParameter(
            f"A folder of texts has no option `{unknown[0]}`.", fix="Its only option is `people`, a table."
        )
    if "people" not in options:
        return read_text_folder(path)
    name = str(options["people"])
    places = [Path(name), path / name, path.parent / name]
    place = next((one for one in places if one.is_file()), path / name)
    return read_text_folder(path, people=place.name, table=read(place))


def _from_file(path: Path, chosen: Format | str | None, options: dict[str, object]) -> Table:
    if path.is_dir() and chosen is None:
        return _from_folder(path, options)
    require_file(path)
    part = format_of(path, chosen, options)
    if path.stat().st_size == 0:
        raise EmptyTable(f"{path.name} is empty.", fix="Check that the file was written completely.", path=str(path))
    try:
        part.check(path)
        return part.read(path)
    except PermissionError:
        raise FileMissing(f"{path} cannot be opened: permission denied.", path=str(path)) from None


def require_file(path: Path) -> None:
    """Refuse a path that is no file."""
    if path.is_dir():
        raise FileMissing(f"{path} is a folder, not a file.", fix="Name a file in it.", path=str(path))
    if not path.exists():
        from difflib import get_close_matches

        folder = path.parent
        near = get_close_matches(path.name, [file.name for file in folder.iterdir()], n=1) if folder.is_dir() else []
        fix = f"Did you mean `{near[0]}`?" if near else "Check the path."
        raise FileMissing(f"There is no file {path}.", fix=fix, path=str(path))


def _from_stdin(chosen: Format | str | None, options: dict[str, object]) -> Table:
    from sfumato.data.formats.csv import Csv

    part = format_of(Path("-.csv"), chosen, options)
    if not isinstance(part, Csv):
        raise UnknownFormat("Standard input is read as delimited text only.", fix="Write the data to a file first.")
    return part.parse(sys.stdin.buffer.read(), "standard input")


def _to_stdout(table: Table, chosen: Format | str | None) -> None:
    from sfumato.data.formats.csv import Csv

    part = format_of(Path("-.csv"), chosen, {})
    if not isinstance(part, Csv):
        raise UnknownFormat("Standard output takes delimited text only.", fix="Name an output file.")
    part.write_to(table, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def from_url(url: str) -> Table:
    """The table that a database address names."""
    address = parse_url(url)
    if address.kind == "duckdb":
        from sfumato.data.formats.database import Database

        path = Path(address.location)
        require_file(path)
        part = Database(table=address.table, query=address.query)
        part.check(path)
        return part.read(path)
    from sfumato.data.postgres import read_postgres

    return read_postgres(address)


def _from_object(source: object) -> Table:
    if isinstance(source, Table):
        return source
    if isinstance(source, pl.DataFrame):
        return Table(frame=source, origin="polars")
    if isinstance(source, pl.LazyFrame):
        return Table(frame=source.collect(), origin="polars-lazy")
    # pandas is never imported here: a frame of it exists only if the caller did.
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _from_pandas(source)
    if hasattr(source, "__arrow_c_stream__"):
        schema = getattr(source, "schema", None)
        refuse_duplicates(list(getattr(schema, "names", [])))
        return Table(frame=pl.DataFrame(source), origin="arrow")
    raise UnknownFormat(
        f"An object of type {type(source).__name__} cannot be read as a table.",
        fix="Give a path, a URL, a pandas or Polars frame, or an Arrow table.",
    )


def _from_pandas(source: Any) -> Table:
    """A pandas frame. A named index becomes columns, an unnamed one is only a row number and is left behind."""
    if any(name is not None for name in source.index.names):
        source = source.reset_index()
    refuse_duplicates([str(name) for name in source.columns])
    source = source.rename(columns=str)
    # Periods such as 1960-01 and intervals have no Polars type: they are read as text.
    texts = [name for name, kind in source.dtypes.items() if str(kind).startswith(("period", "interval"))]
    source = source.assign(**{name: source[name].astype(str).where(source[name].notna(), None) for name in texts})
    import pyarrow as pa

    try:
        frame = pl.from_pandas(source)
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError):
        bad = [str(name) for name, kind in source.dtypes.items() if str(kind) == "object"]
        raise WrongKind(
            f"The pandas frame holds columns of mixed types among: {', '.join(bad) or 'its columns'}.",
            fix="Give each column one type, for example with astype(str).",
            columns=tuple(bad),
        ) from None
    return Table(frame=frame.with_columns(pl.col(pl.Null).cast(pl.String)), origin="pandas")
