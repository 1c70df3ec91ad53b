"""How far answers are off, side by side with other libraries: the same data, the same question, the same guarantee.

Every contender answers the same questions in a process of its own and this one computes the errors. Each question is
asked of many groups that hold the same rows, with public keys, so that one run gives many independent answers; a person
is one row, except in the questions on people with many rows. Root mean square errors (for quantiles median absolute
errors, too) against the exact answer on all data: what bounding and rounding lose is part of the error.

The other libraries cannot share an environment. Give a folder that holds one virtual environment for each:

    python -m venv peers/opendp      && peers/opendp/bin/pip install 'opendp[polars]==0.16.*'
    python -m venv peers/google      && peers/google/bin/pip install python-dp numpy
    python -m venv peers/diffprivlib && peers/diffprivlib/bin/pip install diffprivlib 'scikit-learn<1.7'
    python -m venv peers/pipelinedp  && peers/pipelinedp/bin/pip install pipeline-dp
    python -m venv peers/smartnoise  && peers/smartnoise/bin/pip install smartnoise-sql
    python -m venv peers/tumult      && peers/tumult/bin/pip install tmlt.analytics     # needs Java

Run: python benchmarks/utility_peers.py --peers peers [--only sfumato,opendp] [--cases avg] [--out found.json]
     python benchmarks/utility_peers.py --table found.json --markdown --picture docs/images/query-utility.svg
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


class NoSuchQuestion(Exception):
    """The library has no way to ask this."""


DELTA = 1e-6
SHAPES: dict[str, tuple[float, float, Callable[[Any, int], Any]]] = {
    "uniform": (0, 100, lambda rng, n: rng.uniform(0, 100, n)),
    "log-normal": (0, 1000, lambda rng, n: np.minimum(rng.lognormal(3, 1, n), 1000)),
    "spikes": (0, 100, lambda rng, n: rng.choice([10.0, 20.0, 50.0, 99.0], n, p=[0.3, 0.1, 0.35, 0.25])),
    "narrow": (0, 1e6, lambda rng, n: rng.normal(300_000, 50, n)),
    "far from 0": (80, 100, lambda rng, n: rng.triangular(80, 95, 100, n)),
}
"""Bounds and values. "narrow" fills a ten-thousandth of its declared range."""


def case(ask: list[str], shape: str, n: int, copies: int, runs: int = 1, **more: Any) -> dict[str, Any]:
    return {"id": f"{' '.join(ask)} | {shape} {n}", "ask": ask, "shape": shape, "n": n, "copies": copies, "runs": runs,
            "epsilon": 1.0, **more}  # fmt: skip


CASES = [
    case(["count"], "uniform", 1000, 200, 10),
    case(["distinct"], "uniform", 1000, 200, 10),
    case(["sum"], "uniform", 1000, 200, 10),
    case(["count", "sum"], "uniform", 1000, 200, 2),
    case(["avg"], "uniform", 1000, 200, 2),
    case(["avg"], "log-normal", 1000, 200, 2),
    case(["avg"], "far from 0", 1000, 200, 2),
    case(["count", "sum", "avg"], "uniform", 1000, 200, 2),
    case(["variance"], "uniform", 1000, 200, 2),
    case(["variance"], "log-normal", 1000, 200, 2),
    case(["median"], "uniform", 1000, 200, 6),
    case(["median"], "log-normal", 1000, 200, 6),
    case(["median"], "spikes", 1000, 200, 2),
    case(["median"], "narrow", 1000, 200, 2),
    case(["median"], "uniform", 100, 200, 6),
    case(["median"], "log-normal", 100, 200, 6),
    case(["median"], "log-normal", 20_000, 20, 5),
    case(["q90"], "uniform", 1000, 200, 6),
    case(["q90"], "log-normal", 1000, 200, 6),
    case(["q10", "median", "q90"], "log-normal", 1000, 200, 2),
    case(["q10", "median", "q90"], "spikes", 1000, 200, 2),
    case(["q10", "q20", "q30", "q40", "median", "q60", "q70", "q80", "q90"], "log-normal", 1000, 200, 2),
    {"id": "keys", "ask": ["keys", "count"], "epsilon": 1.0, "groups": 1, "runs": 5},
    {"id": "keys, 4 per person", "ask": ["keys", "count"], "epsilon": 1.0, "groups": 4, "runs": 5},
    {"id": "keys, count and sum", "ask": ["keys", "count", "sum"], "epsilon": 1.0, "groups": 1, "runs": 5},
    {
        "id": "people: 10 cities each, 2 count",
        "ask": ["count", "sum"],
        "epsilon": 1.0,
        "runs": 3,
        "people": True,
    },
]
SIZES = [1, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 32, 40, 60, 100]
EACH = 60
"""How many private keys of each size there are."""
CITIES = 20


def values_of(one: dict[str, Any]) -> Any:
    low, high, draw = SHAPES[one["shape"]]
    return np.clip(draw(np.random.default_rng(7), one["n"]), low, high)


def truth_of(one: dict[str, Any]) -> dict[str, float]:
    x = values_of(one)
    return {name: float(_TRUTH[name](x)) if name in _TRUTH else float(np.quantile(x, rank_of(name)))
            for name in one["ask"]}  # fmt: skip


_TRUTH: dict[str, Callable[[Any], Any]] = {
    "count": len, "distinct": lambda x: len(set(x.tolist())), "sum": np.sum, "avg": np.mean, "variance": np.var,
}  # fmt: skip


def rank_of(name: str) -> float:
    return 0.5 if name == "median" else int(name[1:]) / 100


def key_table(one: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Person, key and value: EACH keys of each size; with several keys per person, people are in blocks of keys."""
    per, persons, keys = one["groups"], [], []
    person = 0
    for size in SIZES:
        for block in range(0, EACH, per):
            names = [f"s{size:03d}n{i:03d}" for i in range(block, min(EACH, block + per))]
            for _ in range(size):
                persons += [person] * len(names)
                keys += names
                person += 1
    return np.array(persons), np.array(keys), np.full(len(keys), 30.0)


def people_table() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    weight = 1 / np.arange(1, CITIES + 1) ** 0.8
    city = rng.choice(CITIES, 20_000, p=weight / weight.sum())
    return (
        rng.integers(0, 2000, 20_000),
        np.array([f"c{c:02d}" for c in city]),
        np.minimum(rng.gamma(2, 20, 20_000), 100),
    )


# --- contenders: each gives {name of the number: list of answers}, or for keys {key: (count, sum)} -----------------


def sfumato(one: dict[str, Any], bounding: str | None = None, delta: float = 0) -> dict[str, Any]:
    import polars as pl

    from sfumato.dataset import Column, Domain, Kind, Role, Schema
    from sfumato.dp.loss import approximate, pure
    from sfumato.dp.receipt import issue
    from sfumato.engines.backends.duckdb.engine import Duckdb
    from sfumato.query import Catalog, PrivateTable
    from sfumato.query.execute.executor import execute_plan
    from sfumato.query.plan.planner import plan_query
    from sfumato.query.results.intervals import OutputEvaluator
    from sfumato.query.sql.parse import parse_query

    def column(kind: Kind, **domain: Any) -> Any:
        return Column(role=Role.PLAIN, kind=kind, domain=Domain.of(domain) if domain else None)

    items = {"count": "COUNT(*)", "distinct": "COUNT(DISTINCT x)", "sum": "SUM(x)", "avg": "AVG(x)",
             "variance": "VAR_POP(x)", "median": "MEDIAN(x)"}  # fmt: skip
    names = [name for name in one["ask"] if name != "keys"]
    asked = ", ".join(items.get(name) or f"QUANTILE_CONT(x, {rank_of(name)})" for name in names)
    person, key, x, low, high, public = table_of(one)
    frame = pl.DataFrame({"p": person, "k": key, "x": x})
    columns = {"p": column(Kind.INTEGER), "x": column(Kind.NUMBER, low=low, high=high),
               "k": column(Kind.CATEGORY, **({"values": tuple(sorted(set(key)))} if public else {}))}  # fmt: skip
    groups = 2 if one.get("people") else one.get("groups", 1)
    shape: dict[str, Any] = {"schema": Schema(columns=columns, unit="p"), "rows": 1, "groups": groups}
    catalog = Catalog(dataset="d", private={"t": PrivateTable(name="t", **shape)})
    spent = delta or (0 if public else DELTA)
    cost = approximate(one["epsilon"], spent) if spent else pure(one["epsilon"])
    strategy = plan_query(parse_query(f"SELECT k, {asked} FROM t GROUP BY k", catalog), cost, bounding=bounding)
    engine = Duckdb().start({"t": frame.to_arrow()})
    answers: dict[str, Any] = {}
    for _ in range(one["runs"]):
        released = execute_plan(strategy, engine, issue(cost, entry=1))
        shown = OutputEvaluator(strategy, released)
        columns_out = [shown.cells(output) for _, output in strategy.query.outputs[1:]]
        for place, group in enumerate(released.keys):
            row = [cell(place, group).value for cell in columns_out]
            collect(one, answers, group[0], dict(zip(names, row, strict=True)))
    engine.close()
    return answers


def sfumato_clip(one: dict[str, Any]) -> dict[str, Any]:
    if not one.get("people"):
        raise NoSuchQuestion
    return sfumato(one, "clip", DELTA)


def opendp(one: dict[str, Any]) -> dict[str, Any]:
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "honest-but-curious")
    person, key, x, low, high, public = table_of(one)
    frame = pl.DataFrame({"p": person, "k": key, "x": x})
    value = pl.col("x").fill_nan(0.0).fill_null(0.0)
    grid = np.linspace(low, high, 4097).tolist()
    items = {"count": lambda: dp.len(), "distinct": lambda: pl.col("x").dp.n_unique(),
             "sum": lambda: value.dp.sum((float(low), float(high))),
             "avg": lambda: value.dp.mean((float(low), float(high)))}  # fmt: skip
    names = [name for name in one["ask"] if name != "keys"]
    if "variance" in names:
        raise NoSuchQuestion
    asked = [(items[n]() if n in items else value.dp.quantile(rank_of(n), grid)).alias(n) for n in names]
    several = one.get("people") or one.get("groups", 1) > 1
    unit = {"contributions": 1, "identifier": "p"} if several else {"contributions": 1}
    loss = dp.loss_of(epsilon=one["epsilon"], **({} if public else {"delta": DELTA}))
    answers: dict[str, Any] = {}
    for _ in range(one["runs"]):
        context = dp.Context.compositor(
            data=frame.lazy(), privacy_unit=dp.unit_of(**unit), privacy_loss=loss, split_evenly_over=1,
            margins=[dp.polars.Margin(by=[], max_length=len(frame))],
        )  # fmt: skip
        query = context.query()
        if several:
            groups = 2 if one.get("people") else one["groups"]
            query = query.truncate_per_group(1, by=["k"]).truncate_num_groups(groups, by=["k"], keep="first")
        query = query.group_by("k").agg(*asked)
        if public:
            query = query.with_keys(pl.LazyFrame({"k": sorted(set(key.tolist()))}))
        for row in query.release().collect().iter_rows(named=True):
            collect(one, answers, row["k"], {name: row[name] for name in names})
    return answers


def google(one: dict[str, Any]) -> dict[str, Any]:
    import pydp.algorithms.laplacian as lap

    epsilon, names = one["epsilon"], [name for name in one["ask"] if name != "keys"]
    if one.get("people") or "distinct" in names:
        raise NoSuchQuestion
    answers: dict[str, Any] = {}
    if one["id"] == "keys":
        from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy

        chosen = create_truncated_geometric_partition_strategy(epsilon / 2, DELTA, one["groups"])
        for size in SIZES:
            for i in list(range(EACH)) * one["runs"]:
                if chosen.should_keep(size):
                    count = lap.Count(epsilon=epsilon / 2, dtype="int").quick_result([1] * size)
                    collect(one, answers, f"s{size:03d}n{i:03d}", {"count": count})
        return answers
    if one["id"].startswith("keys"):
        raise NoSuchQuestion
    x, (low, high, _) = values_of(one), SHAPES[one["shape"]]
    share, rows = epsilon / len(names), values_of(one).tolist()
    bounds = {"lower_bound": float(low), "upper_bound": float(high), "dtype": "float"}
    makers: dict[str, Callable[[], Any]] = {
        "count": lambda: lap.Count(epsilon=share, dtype="float"),
        "sum": lambda: lap.BoundedSum(epsilon=share, **bounds),
        "avg": lambda: lap.BoundedMean(epsilon=share, **bounds),
        "variance": lambda: lap.BoundedVariance(epsilon=share, **bounds),
    }
    for _ in range(min(400, one["copies"] * one["runs"])):
        found = {}
        for name in names:
            maker = makers.get(name) or (
                lambda name=name: lap.Percentile(epsilon=share, percentile=rank_of(name), **bounds)
            )
            found[name] = maker().quick_result(rows)
        collect(one, answers, "", found)
    assert len(x) == one["n"]
    return answers


def diffprivlib(one: dict[str, Any]) -> dict[str, Any]:
    import warnings

    from diffprivlib import tools

    warnings.simplefilter("ignore")
    if "shape" not in one or "distinct" in one["ask"]:
        raise NoSuchQuestion
    (low, high, _), x, share = SHAPES[one["shape"]], values_of(one), one["epsilon"] / len(one["ask"])
    makers: dict[str, Callable[[], Any]] = {
        "count": lambda: tools.count_nonzero(np.ones(len(x)), epsilon=share),
        "sum": lambda: tools.sum(x, epsilon=share, bounds=(low, high)),
        "avg": lambda: tools.mean(x, epsilon=share, bounds=(low, high)),
        "variance": lambda: tools.var(x, epsilon=share, bounds=(low, high)),
    }
    answers: dict[str, Any] = {}
    for _ in range(min(400, one["copies"] * one["runs"])):
        found = {}
        for name in one["ask"]:
            maker = makers.get(name)
            quantile = rank_of(name) if maker is None else 0.0
            found[name] = maker() if maker else tools.quantile(x, quantile, epsilon=share, bounds=(low, high))
        collect(one, answers, "", found)
    return answers


def pipelinedp(one: dict[str, Any]) -> dict[str, Any]:
    import pipeline_dp as pd

    metrics = {"count": pd.Metrics.COUNT, "sum": pd.Metrics.SUM, "avg": pd.Metrics.MEAN,
               "variance": pd.Metrics.VARIANCE}  # fmt: skip
    names = [name for name in one["ask"] if name != "keys"]
    if "distinct" in names or one.get("n", 0) > 5000:
        raise NoSuchQuestion
    fields = {"avg": "mean"} | {n: f"percentile_{round(100 * rank_of(n))}" for n in names if n not in metrics}
    asked = [metrics.get(n) or pd.Metrics.PERCENTILE(round(100 * rank_of(n))) for n in names]
    person, key, x, low, high, public = table_of(one)
    rows = list(zip(person.tolist(), key.tolist(), x.tolist(), strict=True))
    extract = pd.DataExtractors(privacy_id_extractor=lambda r: r[0], partition_extractor=lambda r: r[1],
                                value_extractor=lambda r: r[2])  # fmt: skip
    answers: dict[str, Any] = {}
    for _ in range(one["runs"]):
        budget = pd.NaiveBudgetAccountant(total_epsilon=one["epsilon"], total_delta=0 if public else DELTA)
        parameters = pd.AggregateParams(
            noise_kind=pd.NoiseKind.LAPLACE, metrics=asked, max_contributions_per_partition=1,
            max_partitions_contributed=2 if one.get("people") else one.get("groups", 1),
            min_value=float(low), max_value=float(high),
        )  # fmt: skip
        keys = sorted(set(key.tolist())) if public else None
        found = pd.DPEngine(budget, pd.LocalBackend()).aggregate(rows, parameters, extract, public_partitions=keys)
        budget.compute_budgets()
        for group, row in found:
            collect(one, answers, group, {n: getattr(row, fields.get(n, n)) for n in names})
    return answers


def smartnoise(one: dict[str, Any]) -> dict[str, Any]:
    import pandas as pd
    import snsql

    items = {"count": "COUNT(*)", "distinct": "COUNT(DISTINCT x)", "sum": "SUM(x)", "avg": "AVG(x)",
             "variance": "VARIANCE(x)"}  # fmt: skip
    names = [name for name in one["ask"] if name != "keys"]
    if any(name not in items for name in names):
        raise NoSuchQuestion
    person, key, x, low, high, public = table_of(one)
    frame = pd.DataFrame({"k": key, "x": x, "p": person})
    groups = 2 if one.get("people") else one.get("groups", 1)
    columns = {"k": {"type": "string"}, "x": {"type": "float", "lower": float(low), "upper": float(high)},
               "p": {"type": "int", "private_id": True}}  # fmt: skip
    table = {"row_privacy": False, "max_ids": groups, "censor_dims": not public, "rows": len(frame), **columns}
    sql = f"SELECT k, {', '.join(f'{items[n]} AS y{n}' for n in names)} FROM d.t GROUP BY k"
    answers: dict[str, Any] = {}
    for _ in range(one["runs"]):
        epsilon = one["epsilon"]
        for _attempt in range(2):  # its epsilon is per column; take what makes the whole question cost epsilon
            privacy = snsql.Privacy(epsilon=epsilon, delta=DELTA)
            reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"d": {"t": table}}})
            epsilon = one["epsilon"] * epsilon / float(reader.get_privacy_cost(sql)[0])
        for row in reader.execute_df(sql).to_dict("records"):
            collect(one, answers, row["k"], {name: row[f"y{name}"] for name in names})
    return answers


_SPARK: list[Any] = []


def tumult(one: dict[str, Any]) -> dict[str, Any]:
    import pandas as pd
    import tmlt.analytics as ta
    from pyspark.sql import SparkSession

    names = [name for name in one["ask"] if name != "keys"]
    if one["id"] not in TUMULT:
        raise NoSuchQuestion
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if not _SPARK:
        made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        _SPARK.append(made.config("spark.sql.shuffle.partitions", "4").getOrCreate())
        _SPARK[0].sparkContext.setLogLevel("ERROR")
    person, key, x, low, high, public = table_of(one)
    frame = _SPARK[0].createDataFrame(pd.DataFrame({"p": person, "k": key, "x": x}))
    several = one.get("people") or one.get("groups", 1) > 1
    budget = ta.PureDPBudget(math.inf) if public else ta.ApproxDPBudget(math.inf, 1)
    change = ta.AddRowsWithID("p") if several else ta.AddOneRow()
    session = ta.Session.from_dataframe(
        privacy_budget=budget, source_id="t", dataframe=frame, protected_change=change
    )  # fmt: skip
    query = ta.QueryBuilder("t")
    if several:
        groups = 2 if one.get("people") else one["groups"]
        query = query.enforce(ta.MaxGroupsPerID("k", groups)).enforce(ta.MaxRowsPerGroupPerID("k", 1))
    keys = ta.KeySet.from_dict({"k": sorted(set(key.tolist()))})
    share = one["epsilon"] / (len(names) + (not public))
    if not public:
        chosen = session.evaluate(ta.QueryBuilder("t").get_groups(["k"]), ta.ApproxDPBudget(share, DELTA))
        keys = ta.KeySet.from_dataframe(chosen)
    answers: dict[str, Any] = {}
    found: dict[str, dict[str, float]] = {}
    for name in names:  # one run: a run takes minutes
        grouped = query.groupby(keys)
        makers = {"count": lambda g=grouped: g.count(name="y"), "sum": lambda g=grouped: g.sum("x", low, high, "y"),
                  "avg": lambda g=grouped: g.average("x", low, high, "y"),
                  "variance": lambda g=grouped: g.variance("x", low, high, "y")}  # fmt: skip
        rank = None if name in makers else rank_of(name)
        question = makers[name]() if rank is None else grouped.quantile("x", rank, low, high, "y")
        cost = ta.PureDPBudget(share) if public else ta.ApproxDPBudget(share, 0)
        for row in session.evaluate(question, cost).collect():
            found.setdefault(row["k"], {})[name] = row["y"]
    for group, row in found.items():
        collect(one, answers, group, row)
    return answers


TUMULT = {"count | uniform 1000", "sum | uniform 1000", "count sum | uniform 1000", "avg | uniform 1000",
          "variance | uniform 1000", "median | uniform 1000", "median | log-normal 1000", "median | narrow 1000",
          "keys"}  # fmt: skip
"""A question takes it 20 to 50 seconds; these are asked."""


def table_of(one: dict[str, Any]) -> tuple[Any, Any, Any, float, float, bool]:
    if one.get("people"):
        return *people_table(), 0, 100, True
    if "groups" in one:
        return *key_table(one), 0, 100, False
    x, (low, high, _), copies = values_of(one), SHAPES[one["shape"]], one["copies"]
    keys = np.repeat([f"k{i:03d}" for i in range(copies)], len(x))
    return np.arange(len(x) * copies), keys, np.tile(x, copies), low, high, True


def collect(one: dict[str, Any], answers: dict[str, Any], group: str, row: dict[str, Any]) -> None:
    if one.get("people") or "groups" in one:
        answers.setdefault(group, []).append({n: None if v is None else float(v) for n, v in row.items()})
        return
    for name, value in row.items():
        answers.setdefault(name, []).append(None if value is None else float(value))


CONTENDERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "sfumato": sfumato, "sfumato clip": sfumato_clip, "opendp": opendp, "google": google, "diffprivlib": diffprivlib,
    "pipelinedp": pipelinedp, "smartnoise": smartnoise, "tumult": tumult,
}  # fmt: skip


# --- errors and the table -----------------------------------------------------------------------------------------


def errors(one: dict[str, Any], answers: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Per number: root mean square and median absolute error, how many answers; for keys the share named by size."""
    if "groups" in one:
        times = EACH * one["runs"]
        named = {str(s): sum(len(rows) for key, rows in answers.items() if f"s{s:03d}n" in key) / times for s in SIZES}
        sizes = np.array([int(key[1:4]) for key in answers for _ in answers[key]], dtype=float)
        out: dict[str, dict[str, float]] = {"keys": named | {"all": sum(named.values()) / len(SIZES)}}
        for name, weight in (("count", 1.0), ("sum", 30.0)):
            if name in one["ask"]:
                got = np.array([row[name] for key in answers for row in answers[key]], dtype=float)
                large = sizes >= 100  # named by nearly all, so that being named is no matter of luck
                off = (got - weight * sizes)[large]
                out[name] = {"rmse": float(np.sqrt(np.mean(off**2))), "mad": float(np.median(abs(off))), "of": len(off)}
        return out
    if one.get("people"):
        _, city, x = people_table()
        out = {}
        for name in one["ask"]:
            exact = {c: float((city == c).sum() if name == "count" else x[city == c].sum()) for c in set(city)}
            off = np.array([row[name] - exact[c] for c, rows in answers.items() for row in rows])
            relative = np.array([(row[name] - exact[c]) / exact[c] for c, rows in answers.items() for row in rows])
            out[name] = {
                "rmse": float(np.sqrt(np.mean(off**2))),
                "mad": float(np.median(abs(relative))),
                "of": len(off),
            }
        return out
    exact = truth_of(one)
    out = {}
    for name in one["ask"]:
        got = np.array([np.nan if v is None else v for v in answers[name]])
        off = got[~np.isnan(got)] - exact[name]
        out[name] = {"rmse": float(np.sqrt(np.mean(off**2))), "mad": float(np.median(abs(off))), "of": len(off)}
    return out


def run_one(name: str, pattern: str, out: Path) -> None:
    found = {}
    for one in CASES:
        if pattern not in one["id"]:
            continue
        try:
            found[one["id"]] = errors(one, CONTENDERS[name](one))
        except NoSuchQuestion:
            continue
        except Exception as failure:
            found[one["id"]] = {"failed": f"{type(failure).__name__}: {failure}"[:200]}
        out.write_text(json.dumps(found))


def show(found: dict[str, Any]) -> None:
    others = [name for name in found if name != "sfumato"]
    print(f"{'question (epsilon 1)':<44}{'error of':<10}{'sfumato':>10}" + "".join(f"{name:>20}" for name in others))
    for one in CASES:
        ours = found["sfumato"].get(one["id"])
        if not ours:
            continue
        for number in ours:
            if number == "failed":
                print(one["id"], ours)
                continue
            measure = "all" if number == "keys" else "rmse"
            mine = ours[number][measure]
            line = f"{one['id'][:43]:<44}{number:<10}{mine:>10.4g}"
            for name in others:
                theirs = found[name].get(one["id"], {})
                if number in theirs:
                    value = theirs[number][measure]
                    line += f"{value:>12.4g} x{value / mine if mine else math.inf:<6.2f}"
                else:
                    line += f"{'failed' if 'failed' in theirs else '-':>20}"
            print(line)


def lines(found: dict[str, Any]) -> list[tuple[str, str, float, dict[str, float]]]:
    """Question, number, our error (or share of keys not named) and the others'."""
    out = []
    for one in CASES:
        ours = found["sfumato"].get(one["id"], {})
        for number, mine in ours.items():
            if number in ("q20", "q30", "q40", "q60", "q70", "q80"):
                continue
            measure = "all" if number == "keys" else "rmse"
            others = {
                name: found[name][one["id"]][number][measure]
                for name in found
                if name != "sfumato" and number in found[name].get(one["id"], {})
            }
            title = one["id"].replace("q10 q20 q30 q40 median q60 q70 q80 q90", "nine deciles")
            title = title.replace(" sum", ", sum").replace(" avg", ", avg").replace(" median", ", median")
            title = title.replace(" q90 |", ", q90 |").replace(", count and, sum", ", count and sum")
            out.append((title, number, mine[measure], {k: v for k, v in others.items() if not math.isnan(v)}))
    return out


def markdown(found: dict[str, Any]) -> None:
    """The table of the docs: errors (of keys: the share named), and in brackets how many times ours the other's is."""
    others = [name for name in _COLOURS if name in found]
    print(f"| question | of | sfumato | {' | '.join(others)} |")
    print("|---" * (3 + len(others)) + "|")
    for title, number, mine, theirs in lines(found):
        cells = []
        for name in others:
            value = theirs.get(name)
            ratio = "" if value is None or not mine else f" ({value / mine:.2g})"
            cells.append("" if value is None else f"{value:.3g}{ratio}")
        print(f"| {title.replace('|', '·')} | {number} | {mine:.3g} | {' | '.join(cells)} |")


_COLOURS = {"opendp": "#0072b2", "tumult": "#e69f00", "google": "#d55e00", "pipelinedp": "#009e73",
            "smartnoise": "#cc79a7", "diffprivlib": "#999999"}  # fmt: skip


def picture(found: dict[str, Any], path: Path) -> None:
    """How many times ours the others' errors are, on a logarithmic scale; right of the line is larger."""
    rows = [row for row in lines(found) if row[2] and row[3]]
    names = [name for name in _COLOURS if name in found]
    left, width, step, top, low, high = 330, 520, 17, 58, 0.5, 100.0

    def at(ratio: float) -> float:
        return left + width * math.log(min(max(ratio, low), high) / low) / math.log(high / low)

    bottom = top + step * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{bottom + 44}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           '<text x="12" y="20" font-size="14">Error of other libraries, in multiples of ours (epsilon 1)</text>',
           ]  # fmt: skip
    for i, name in enumerate(names):
        x = left + i * 88
        out.append(f'<circle cx="{x}" cy="38" r="4" fill="{_COLOURS[name]}"/><text x="{x + 8}" y="42">{name}</text>')
    for tick in (0.5, 1, 2, 5, 10, 20, 50, 100):
        colour = "#000000" if tick == 1 else "#dddddd"
        out.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top - 6}" y2="{bottom}" stroke="{colour}"/>')
        label = "100 or more" if tick == 100 else f"{tick:g}"
        out.append(f'<text x="{at(tick):.1f}" y="{bottom + 16}" text-anchor="middle">{label}</text>')
    for i, (title, number, mine, theirs) in enumerate(rows):
        y = top + step * i + 8
        label = f"{title}: {number}" if number != "keys" else f"{title}: keys named (inverse)"
        out.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{label.replace("|", "·")}</text>')
        for name in names:
            if name in theirs:
                ratio = theirs[name] / mine if number != "keys" else mine / max(theirs[name], 1e-9)
                out.append(f'<circle cx="{at(ratio):.1f}" cy="{y}" r="4" fill="{_COLOURS[name]}" fill-opacity="0.8"/>')
    out.append(f'<text x="{left + width / 2}" y="{bottom + 36}" text-anchor="middle">'
               "left of the black line: smaller errors than ours; right of it: larger</text></svg>")  # fmt: skip
    path.write_text("\n".join(out) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", type=Path, help="folder with one virtual environment for each other library")
    parser.add_argument("--only", default="", help="contenders, with commas between")
    parser.add_argument("--cases", default="", help="a part of the questions' names")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="*", help="show results that --out kept, later files first")
    parser.add_argument("--picture", type=Path)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--run", nargs=3, metavar=("CONTENDER", "CASES", "OUT"))
    given = parser.parse_args()
    if given.run:
        run_one(given.run[0], given.run[1], Path(given.run[2]))
        return
    found: dict[str, Any] = {}
    for path in given.table or ():
        for name, cases in json.loads(path.read_text()).items():
            found.setdefault(name, {}).update(cases)
    names = [name for name in CONTENDERS if not given.table and (not given.only or name in given.only.split(","))]
    for name in names:
        python = sys.executable
        if not name.startswith("sfumato"):
            if given.peers is None or not (given.peers / name / "bin/python").exists():
                continue
            python = str(given.peers / name / "bin/python")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "found.json"
            child = subprocess.run([python, __file__, "--run", name, given.cases, str(path)], capture_output=True)
            if not path.exists():
                print(f"{name} failed: {child.stderr.decode()[-300:]}", file=sys.stderr)
                continue
            found[name] = json.loads(path.read_text())
        print(f"{name}: {len(found[name])} questions", file=sys.stderr)
        if given.out:
            given.out.write_text(json.dumps(found))
    if given.picture:
        picture(found, given.picture)
    if given.markdown:
        markdown(found)
    elif "sfumato" in found:
        show(found)


if __name__ == "__main__":
    main()
