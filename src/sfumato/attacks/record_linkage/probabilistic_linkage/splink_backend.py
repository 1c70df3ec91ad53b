"""Splink back end of probabilistic linkage, on DuckDB or Spark.

Splink estimates u from random pairs and m by expectation maximization, and compares in SQL, so that files larger than
one machine can be linked on a cluster. Columns, levels, blocks and the breaking of ties are those of the built-in
engine. Splink receives two tables of numbers, codes and folded text with generated column names.

Reference: Linacre, R., Lindsay, S., Manassis, T., Slade, Z., Hepworth, T. (2022). Splink: Free software for
probabilistic record linkage at scale. International Journal of Population Data Science 7(3).
doi:10.23889/ijpds.v7i3.1794
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import Blocks
from sfumato.attacks.record_linkage.probabilistic_linkage.comparisons import Labels, Numbers
from sfumato.attacks.record_linkage.probabilistic_linkage.string_similarity import CUTS, sorted_words
from sfumato.deadline import Deadline, batches, check_deadline
from sfumato.errors import DatabaseFailed, OutOfTime, SfumatoError
from sfumato.extras import missing_extra
from sfumato.progress import Progress

__all__ = ["link_by_splink"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_TRAINING = 5_000_000
"""Number of pairs from which weights are estimated."""
_ROUNDS = (25, 5, 2, 1)
"""Rounds of expectation maximization; the first number that works is used."""
_PORTION = 25_000_000
"""Number of pairs scored at a time."""
_PIECES = 8
"""Minimum number of pieces under a time limit, so that there is a partial result."""


def link_by_splink(
    near: list[Numbers],
    fitted: list[Labels],
    cuts: Floats,
    blocks: Blocks,
    *,
    spark: bool,
    draw: np.random.Generator,
    progress: Progress,
) -> tuple[Ints, Floats, list[float]]:
    """For each target the row with the highest weight, its probability within the block, and bits per column."""
    try:
        import splink
    except ImportError:
        raise missing_extra("linkage", "splink", needed_by="The engine `splink`") from None
    people = len(blocks.first)
    seed = int(draw.integers(1, 2**31))
    comparisons, known, released = [], _keys(blocks.person), _keys(blocks.row)
    columns = [(_distance(place, cuts[place]), _number_columns(place, column)) for place, column in enumerate(near)]
    columns += [
        (_likeness(place, column, spark), _label_columns(place, column))
        for place, column in enumerate(fitted, start=len(near))
    ]
    for comparison, sides in columns:
        comparisons.append(comparison)
        known.update(sides[0])
        released.update(sides[1])
    settings = splink.SettingsCreator(
        link_type="link_only",
        comparisons=comparisons,
        blocking_rules_to_generate_predictions=[splink.block_on("block")],
        # Every target has one true row.
        probability_two_random_records_match=min(0.5, people / max(1, blocks.pairs)),
        retain_matching_columns=False,
    )
    row, share = np.full(people, -1, dtype=np.int64), np.zeros(people)
    left, right = pl.DataFrame(known), pl.DataFrame(released)
    done = 0
    with _quiet(), _database(spark, progress) as base:
        with progress.task("learning the weights of agreement", 2) as tick:
            # Splink uses the table whose name sorts first as the left one.
            tables = [_table(base, left, "1_known"), _table(base, right, "2_released")]
            linker = splink.Linker(tables, settings, log_level=None)
            # One chunk per column: on small files additional chunks are slower.
            linker.training.estimate_u_using_random_sampling(
                max_pairs=_TRAINING, seed=seed, num_chunks=1, min_count_per_level=None
            )
            tick(1)
            linker = _trained(linker, tables, _TRAINING if blocks.pairs > _TRAINING else None)
            tick(1)
        model = linker.misc.save_model_to_json()
        pieces = max(-(-blocks.pairs // _PORTION), _PIECES if isinstance(progress, Deadline) else 1)
        with suppress(OutOfTime), _plain_words("Spark" if spark else "DuckDB", progress):
            for number, part in enumerate(batches(progress, "linkage by Splink", people, -(-people // pieces))):
                some = _table(base, left[part], f"1_known_{number}")
                pair = splink.Linker([some, tables[1]], model, log_level=None)
                scored: Any = pair.inference.predict()
                best = pl.DataFrame(
                    pl.from_arrow(scored.query_sql(_best(scored.physical_name, seed, spark)).as_pyarrow_table())
                )
                who = best["person"].to_numpy()
                row[who], share[who] = best["row"].to_numpy(), best["share"].to_numpy()
                scored.drop_table_from_database_and_remove_from_cache()
                done = part.stop
        gain = [_bits(comparison) for comparison in model["comparisons"]]
    return row[:done], share[:done], gain


def _table(base: Any, frame: pl.DataFrame, name: str) -> Any:
    return base.register(frame.to_arrow(), dataset_display_name=f"__sfumato_{name}")


def _trained(linker: Any, tables: list[Any], pairs: int | None) -> Any:
    """Estimate m; in fewer rounds if matches are so clear that probabilities underflow in Splink."""
    import splink

    model = linker.misc.save_model_to_json()
    for rounds in _ROUNDS:
        linker = splink.Linker(tables, {**model, "max_iterations": rounds}, log_level=None)
        try:
            linker.training.estimate_parameters_using_expectation_maximisation(
                splink.block_on("block"), fix_probability_two_random_records_match=True, max_pairs=pairs
            )
        except ValueError:
            if rounds == _ROUNDS[-1]:
                raise
            continue
        break
    return linker


def _keys(block: Ints) -> dict[str, Any]:
    return {"unique_id": np.arange(len(block)), "block": block}


def _number_columns(number: int, column: Numbers) -> tuple[dict[str, Any], dict[str, Any]]:
    known, released = (pl.Series(side).fill_nan(None) for side in (column.known, column.released))
    return {f"c{number}": known}, {f"c{number}": released}


def _distance(number: int, cuts: Floats) -> Any:
    import splink.comparison_level_library as level
    import splink.comparison_library as library

    name = f"c{number}"
    near = [
        level.CustomLevel(f"abs({name}_l - {name}_r) <= {float(cut)!r}", label_for_charts=f"level {place}")
        for place, cut in enumerate(np.unique(cuts))
    ]
    return library.CustomComparison(
        output_column_name=name, comparison_levels=[level.NullLevel(name), *near, level.ElseLevel()]
    )


def _label_columns(number: int, column: Labels) -> tuple[dict[str, Any], dict[str, Any]]:
    """Codes of matching values on the known side, of the value itself on the released side; and the text of names.

    Splink needs all columns in both tables, so each has some that only the other one uses.
    """
    values = len(column.starts) - 1
    agrees = column.level == 0
    value = np.repeat(np.arange(values), np.diff(column.starts))[agrees]
    fits = column.fits[agrees]
    if _single(column):
        code = np.full(values, -1, dtype=np.int64)
        code[value] = fits
        known: dict[str, Any] = {f"c{number}": code[column.known]}
        released: dict[str, Any] = {f"c{number}": column.released}
    else:
        lists = pl.DataFrame({"value": value, "fits": fits}).group_by("value").agg("fits")
        every = pl.DataFrame({"value": np.arange(values)}).join(lists, on="value", how="left", maintain_order="left")
        known = {
            f"f{number}": every["fits"].fill_null([]).gather(column.known),
            f"c{number}": np.full(len(column.known), -1, dtype=np.int64),
        }
        released = {
            f"f{number}": pl.Series([[]], dtype=pl.List(pl.Int64)).new_from_index(0, len(column.released)),
            f"c{number}": column.released,
        }
    known[f"u{number}"], released[f"u{number}"] = column.unsaid[column.known], column.vague[column.released]
    if column.text is not None:
        for side, text, code in ((known, column.text[0], column.known), (released, column.text[1], column.released)):
            plain = text.fill_null("")
            side[f"t{number}"], side[f"w{number}"] = plain.gather(code), sorted_words(plain).gather(code)
    return known, released


def _single(column: Labels) -> bool:
    """Whether no known value matches more than one released value."""
    value = np.repeat(np.arange(len(column.starts) - 1), np.diff(column.starts))[column.level == 0]
    return len(np.unique(value)) == len(value)


def _likeness(number: int, column: Labels, spark: bool) -> Any:
    import splink.comparison_level_library as level
    import splink.comparison_library as library

    contains = "array_contains" if spark else "list_contains"
    fits = f"c{number}_l = c{number}_r" if _single(column) else f"{contains}(f{number}_l, c{number}_r)"
    unknown = level.CustomLevel(f"(u{number}_l or u{number}_r) and not ({fits})", label_for_charts="unknown")
    steps = [level.CustomLevel(fits, label_for_charts="fits")]
    if column.text is not None:
        like = "jaro_winkler" if spark else "jaro_winkler_similarity"
        text, words = (f"{like}({name}{number}_l, {name}{number}_r)" for name in "tw")
        written = f"t{number}_l <> '' and t{number}_r <> ''"
        same = f"w{number}_l = w{number}_r"
        steps = [level.CustomLevel(f"({fits}) or ({written} and {same})", label_for_charts="the same")]
        steps += [
            level.CustomLevel(f"{written} and greatest({text}, {words}) >= {cut}", label_for_charts=f"from {cut}")
            for cut in CUTS
        ]
    return library.CustomComparison(
        output_column_name=f"c{number}",
        comparison_levels=[unknown.configure(is_null_level=True), *steps, level.ElseLevel()],
    )


def _best(table: str, seed: int, spark: bool) -> str:
    """SQL for the row with the highest weight per target; ties are broken by a seeded hash."""
    coin = f"{'xxhash64' if spark else 'hash'}({seed}, unique_id_l, unique_id_r)"
    return f"""
        with tops as (select unique_id_l as person, max(match_weight) as top from {table} group by unique_id_l)
        select person,
               min_by(unique_id_r, case when match_weight = top then {coin} end) as row,
               1 / sum(power(2, match_weight - top)) as share
        from {table} join tops on unique_id_l = person
        group by person
    """


def _bits(comparison: dict[str, Any]) -> float:
    """Expected evidence of this column for a true match, in bits."""
    levels = [one for one in comparison["comparison_levels"] if not one.get("is_null_level", False)]
    pairs = [(one.get("m_probability"), one.get("u_probability")) for one in levels]
    return float(
        sum(m * np.log2(m / u) for m, u in pairs if isinstance(m, float) and isinstance(u, float) and m * u > 0)
    )


@contextmanager
def _database(spark: bool, progress: Progress) -> Iterator[Any]:
    """DuckDB in memory, or the active Spark session, or a local one that is stopped afterwards.

    On DuckDB a statement is interrupted when time is up; Spark finishes the current one.
    """
    if not spark:
        import duckdb
        from splink import DuckDBAPI

        connection = duckdb.connect(":memory:")
        alarm = Timer(progress.left, connection.interrupt) if isinstance(progress, Deadline) else None
        try:
            if alarm is not None:
                alarm.daemon = True
                alarm.start()
            with _plain_words("DuckDB", progress):
                yield DuckDBAPI(connection=connection)
        finally:
            if alarm is not None:
                alarm.cancel()
            connection.close()
        return
    from sfumato.engines.backends.spark.session import spark_session

    with spark_session(memory="4GB") as session:
        import splink.backends.spark as backend

        with _plain_words("Spark", progress):
            # Spark has no string similarity function; Splink ships one.
            session.sql(f"ADD JAR '{backend.similarity_jar_location()}'")
            make: Any = backend.SparkAPI
            base = make(spark_session=session, break_lineage_method="persist")
            try:
                yield base
            finally:
                _forget(session)


def _forget(session: Any) -> None:
    """Remove our views and cached values from a session that outlives the attack."""
    for pattern in ("__splink__*", "__sfumato_*"):
        for view in session.catalog.listTables(pattern=pattern):
            if view.isTemporary:
                session.table(view.name).unpersist()
                session.catalog.dropTempView(view.name)


@contextmanager
def _plain_words(engine: str, progress: Progress) -> Iterator[None]:
    """Hide error messages of the database, which may contain statements and values."""
    try:
        yield
    except SfumatoError:
        raise
    except Exception as failure:
        check_deadline(progress)
        if isinstance(progress, Deadline) and "INTERRUPT" in f"{failure} {failure.__cause__}".upper():
            # Interrupted by the timer, whose clock may differ from the deadline's.
            raise OutOfTime("Stopped: time was up before the files were linked.", fix="Allow more time.") from None
        raise DatabaseFailed(
            f"Splink could not link the files on {engine} ({type(failure).__name__}).",
            fix="Use the built-in engine (`engine: own`), or fewer columns.",
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Splink's own log."""
    log = logging.getLogger("splink")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
