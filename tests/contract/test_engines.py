"""What every engine promises: exact numbers, sealed; nothing but its own tables; one message for every failure."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest

from sfumato.data import read
from sfumato.engines.engine import Engine, Running
from sfumato.errors import AnswerFailed, FileMissing, NotApplicable, UnknownFormat
from sfumato.registry import registry
from sfumato.secret import Permit, SecretValue

SLOW = {"spark": [pytest.mark.slow]}
PARTS = [
    pytest.param(kind.build(example), marks=SLOW.get(kind.part_name(), []), id=f"{kind.part_name()} {example}")
    for kind in registry("engine")
    for example in kind.examples
]
FRAME = pl.DataFrame(
    {"n": [1, 2, None, 4], "x": [0.5, float("nan"), None, float("inf")], "word": ["a", "b", None, "a"]}
)


@pytest.fixture(params=PARTS)
def engine(request: pytest.FixtureRequest) -> Engine:
    part = request.param
    assert isinstance(part, Engine)
    if part.part_name() == "postgres":
        return part.model_copy(update={"url": request.getfixturevalue("postgresql")})
    if part.part_name() == "spark":
        request.getfixturevalue("java")
    return part


def opened(running: Running, sql: str) -> list[tuple[object, ...]]:
    return running.run(sql).open(Permit("a test"))


def test_numbers_are_exact_and_sealed(engine: Engine) -> None:
    running = engine.start({"t": FRAME.to_arrow()})
    assert isinstance(running.run("SELECT COUNT(*) FROM t"), SecretValue)
    assert opened(running, "SELECT COUNT(*), SUM(n), COUNT(x) FROM t") == [(4, 7, 3)]
    assert opened(running, "SELECT word, COUNT(*) FROM t WHERE word IS NOT NULL GROUP BY word ORDER BY word") == [
        ("a", 2),
        ("b", 1),
    ]


def test_files_and_frames_agree(engine: Engine, tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "t.parquet")
    FRAME.write_csv(tmp_path / "t.csv")
    sql = "SELECT SUM(TRY_CAST(n AS BIGINT)), COUNT(TRY_CAST(word AS VARCHAR)) FROM t"
    sources = [FRAME.to_arrow(), tmp_path / "t.parquet", tmp_path / "t.csv", str(tmp_path / "t.csv")]
    read = [source for source in sources if Path(str(source)).suffix in engine.suffixes]
    for source in sources[1:]:
        if source not in read:
            with pytest.raises(UnknownFormat):
                engine.start({"t": source})
    sources = [FRAME.to_arrow(), *read]
    assert {opened(engine.start({"t": source}), sql)[0] for source in sources} == {(7, 3)}


@pytest.mark.parametrize(
    "sql", ["SELECT error('x')", "SELECT * FROM elsewhere", "not sql", "SELECT * FROM '/etc/passwd'"]
)
def test_every_failure_sounds_the_same(engine: Engine, sql: str) -> None:
    running = engine.start({"t": FRAME.to_arrow()})
    with pytest.raises(AnswerFailed) as failure:
        running.run(sql)
    assert str(failure.value).startswith("The question could not be computed.")
    assert failure.value.__suppress_context__


def test_a_statement_is_given_up_in_time_and_the_next_is_answered(engine: Engine) -> None:
    limit = 10 if engine.part_name() == "spark" else 1.5  # a busy machine needs seconds for Spark's smallest answer
    running = engine.model_copy(update={"timeout": limit}).start({"t": pl.DataFrame({"n": range(5000)}).to_arrow()})
    start = time.monotonic()
    with pytest.raises(AnswerFailed) as failure:
        running.run("SELECT COUNT(*) FROM t AS a JOIN t AS b ON a.n + b.n >= 0 JOIN t AS c ON a.n + c.n >= b.n")
    assert limit <= time.monotonic() - start < limit + 20
    assert "Its cost stays charged" in str(failure.value)
    assert failure.value.__suppress_context__
    assert opened(running, "SELECT COUNT(*) FROM t") == [(5000,)]
    running.close()


def test_what_is_not_there_is_refused_at_the_start(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(FileMissing if engine.suffixes else UnknownFormat):
        engine.start({"t": tmp_path / "none.parquet"})
    (tmp_path / "t.doc").write_text("x")
    with pytest.raises(UnknownFormat):
        engine.start({"t": tmp_path / "t.doc"})


def test_closing_lets_go(engine: Engine) -> None:
    running = engine.start({"t": FRAME.to_arrow()})
    running.close()
    with pytest.raises(AnswerFailed):
        running.run("SELECT 1")


def test_engines_that_write_files_mask_out_of_core(engine: Engine, tmp_path: Path) -> None:
    """The declared capability and the method agree, in both directions."""
    FRAME.write_parquet(tmp_path / "t.parquet")
    if not engine.writes:
        with pytest.raises(NotApplicable, match="answers queries"):
            engine.workspace(tmp_path / "t.parquet")
        return
    for suffix in engine.writes:
        target = tmp_path / f"out{suffix}"
        with (
            engine.keep_open(),
            engine.workspace(tmp_path / "t.parquet", writes=target, temporary=tmp_path) as workspace,
        ):
            workspace.put("labels", pl.DataFrame({"word": ["a", "b"], "label": ["first", "NA"]}))
            joined = f"SELECT t.n, l.label FROM {workspace.source} AS t LEFT JOIN labels AS l ON t.word = l.word"
            rows = workspace.query(joined, "joining").sort("n", nulls_last=True)
            assert rows.rows() == [(1, "first"), (2, "NA"), (4, "first"), (None, None)]
            workspace.write(joined, target, suffix)
            with pytest.raises(UnknownFormat):
                workspace.write(joined, tmp_path / "out.xlsx", ".xlsx")
            order = workspace.query(
                f"SELECT {workspace.order.format('t.word')} AS place FROM {workspace.source} AS t", ""
            )
            assert order["place"].n_unique() == 3
        assert read(target).frame.sort("n", nulls_last=True).rows() == rows.rows()
