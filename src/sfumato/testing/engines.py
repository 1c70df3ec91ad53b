"""Contract of an engine: exact and secret numbers, no other tables, one message for every failure, masking to files."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data import read
from sfumato.engines.aggregation import CountRows, Total
from sfumato.engines.engine import Engine, Running
from sfumato.engines.expressions import Arithmetic, ColumnRef, Compare, Expression, IsNull, Not, Read, constant
from sfumato.engines.statements import Join, Query, Select, Source, Stored, Subquery
from sfumato.errors import AnswerFailed, FileMissing, NotApplicable, SfumatoError, UnknownFormat
from sfumato.secret import Permit, SecretValue
from sfumato.testing.parts import check_part, expect

_FRAME = pl.DataFrame(
    {"n": [1, 2, None, 4], "x": [0.5, float("nan"), None, float("inf")], "word": ["a", "b", None, "a"]}
)


def check_engine(engine: Engine, *, seconds: float = 1.5) -> None:
    """Raise AssertionError unless ``engine`` keeps the contract of an engine.

    Numbers are exact and come as secret values; files and frames give the same; statements that fail, for whatever
    reason, give one message; a statement is given up after its time limit, for which the check uses ``seconds``;
    missing and unknown files are refused at the start; an engine that declares ``writes`` masks files out of core.
    """
    check_part(engine)
    for check in ENGINE_CHECKS:
        check(engine)
    gives_up_in_time(engine, seconds=seconds)


_N, _X, _WORD = ColumnRef("n", "int"), ColumnRef("x", "float"), ColumnRef("word", "text")


_T = Stored("t")


def _select(*items: Expression, source: Source = _T, **clauses: Any) -> Select:
    return Select(tuple((f"v{i}", item) for i, item in enumerate(items)), source, **clauses)


def _rows(running: Running, query: Query) -> list[tuple[object, ...]]:
    return running.run(query).open(Permit("a check of the engine"))


def numbers_are_exact_and_secret(engine: Engine) -> None:
    running = engine.start({"t": _FRAME.to_arrow()})
    assert isinstance(running.run(_select(CountRows())), SecretValue), "rows are not a SecretValue"
    assert _rows(running, _select(CountRows(), Total(_N), CountRows(_X))) == [(4, 7, 3)], "wrong COUNT or SUM"
    grouped = _select(_WORD, CountRows(), where=Not(IsNull(_WORD)), group_by=1, order_by=(_WORD,))
    assert _rows(running, grouped) == [("a", 2), ("b", 1)], "wrong COUNT by group"


def files_and_frames_agree(engine: Engine) -> None:
    query = _select(Total(Read(("t", "n"), "int")), CountRows(Read(("t", "word"), "text")))
    with tempfile.TemporaryDirectory() as folder:
        parquet, csv = Path(folder, "t.parquet"), Path(folder, "t.csv")
        _FRAME.write_parquet(parquet)
        _FRAME.write_csv(csv)
        sources: list[object] = [_FRAME.to_arrow()]
        for file in (parquet, csv, str(csv)):
            if Path(file).suffix in engine.suffixes:
                sources.append(file)
            else:
                with expect(UnknownFormat, f"`suffixes` does not declare {Path(file).suffix}, which is accepted"):
                    engine.start({"t": file})
        results = {_rows(engine.start({"t": source}), query)[0] for source in sources}
    assert results == {(7, 3)}, "a file and a frame give different numbers"


def every_failure_has_one_message(engine: Engine) -> None:
    running = engine.start({"t": _FRAME.to_arrow()})
    elsewhere = [_select(CountRows(), source=Stored(name)) for name in ("elsewhere", "/etc/passwd", "t; DROP TABLE t")]
    for query in (_select(ColumnRef("other", "int")), *elsewhere):
        try:
            running.run(query)
        except AnswerFailed as failure:
            assert str(failure).startswith("The question could not be computed."), "a failure has its own message"
            assert failure.__suppress_context__, "a failure shows the engine's own error"
        else:
            raise AssertionError(f"the engine ran {query!r}")


def missing_and_unknown_files_are_refused_at_the_start(engine: Engine) -> None:
    with tempfile.TemporaryDirectory() as folder:
        refusal: type[SfumatoError] = FileMissing if engine.suffixes else UnknownFormat
        with expect(refusal, "a file that does not exist is accepted"):
            engine.start({"t": Path(folder, "none.parquet")})
        Path(folder, "t.doc").write_text("x")
        with expect(UnknownFormat, "a file of an unknown format is accepted"):
            engine.start({"t": Path(folder, "t.doc")})


def closing_releases_the_tables(engine: Engine) -> None:
    running = engine.start({"t": _FRAME.to_arrow()})
    running.close()
    with expect(AnswerFailed, "a closed engine answers"):
        running.run(_select(CountRows()))


def masks_files_as_declared(engine: Engine) -> None:
    """The declared ``writes`` and :meth:`Engine.workspace` agree, in both directions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = folder / "t.parquet"
        _FRAME.write_parquet(source)
        if not engine.writes:
            with expect(NotApplicable, "`writes` is empty, but there is a workspace"):
                engine.workspace(source)
            return
        for suffix in engine.writes:
            _mask_file(engine, source, folder / f"out{suffix}", folder)


def _mask_file(engine: Engine, source: Path, target: Path, folder: Path) -> None:
    with engine.keep_open(), engine.workspace(source, writes=[target], numbered=True, temporary=folder) as workspace:
        assert workspace.memory > 0, "a workspace has no memory limit"
        assert workspace.row_number is not None, "rows are not numbered"
        numbers = workspace.query(
            f"SELECT t.{workspace.row_number} AS r, t.n FROM {workspace.source} AS t", "numbering"
        )
        numbered = sorted(numbers.rows())
        assert numbered == list(enumerate(_FRAME["n"].to_list())), "rows are not numbered in the order of the file"
        workspace.store("stored", pl.DataFrame({"r": [1, 3], "word": ["b", None]}))
        kept = f"SELECT t.n, s.word FROM {workspace.source} AS t JOIN stored AS s ON t.{workspace.row_number} = s.r"
        stored = workspace.query(kept, "joining")
        assert sorted(stored.rows()) == [(2, "b"), (4, None)], "a stored table gives other rows"
        workspace.put("labels", pl.DataFrame({"word": ["a", "b"], "label": ["first", "NA"]}))
        joined = f"SELECT t.n, l.label FROM {workspace.source} AS t LEFT JOIN labels AS l ON t.word = l.word"
        rows = workspace.query(joined, "joining").sort("n", nulls_last=True)
        assert rows.rows() == [(1, "first"), (2, "NA"), (4, "first"), (None, None)], "a join gives other rows"
        workspace.write(joined, target, target.suffix)
        with expect(UnknownFormat, "a file of a format that is not in `writes` is written"):
            workspace.write(joined, folder / "out.xlsx", ".xlsx")
        place = workspace.order.format("t.word")
        order = workspace.query(f"SELECT {place} AS place FROM {workspace.source} AS t", "ordering")
        assert order["place"].n_unique() == 3, "`order` does not tell values apart"
    written = read(target).frame.sort("n", nulls_last=True)
    assert written.rows() == rows.rows(), "the written file has other rows"


def gives_up_in_time(engine: Engine, *, seconds: float = 1.5) -> None:
    """A statement stops at the engine's ``timeout``, and the next one is answered."""
    table = pl.DataFrame({"n": range(5000)}).to_arrow()
    running = engine.model_copy(update={"timeout": seconds}).start({"t": table})
    start = time.monotonic()
    try:
        tables = [Subquery(_select(_N), name) for name in "abc"]
        a, b, c = (ColumnRef("v0", "int", name) for name in "abc")
        pairs = Join(tables[0], tables[1], Compare(">=", Arithmetic("+", a, b), constant(0)))
        running.run(_select(CountRows(), source=Join(pairs, tables[2], Compare(">=", Arithmetic("+", a, c), b))))
    except AnswerFailed as failure:
        assert "Its cost stays charged" in str(failure), "giving up has another message than other failures"
        assert failure.__suppress_context__, "a failure shows the engine's own error"
    else:
        raise AssertionError("a statement of many hours ended within its time limit")
    assert seconds <= time.monotonic() - start < seconds + 20, "the statement is not given up at the time limit"
    assert _rows(running, _select(CountRows())) == [(5000,)], "the next statement is not answered"
    running.close()


ENGINE_CHECKS = (
    numbers_are_exact_and_secret,
    files_and_frames_agree,
    every_failure_has_one_message,
    missing_and_unknown_files_are_refused_at_the_start,
    closing_releases_the_tables,
    masks_files_as_declared,
)
