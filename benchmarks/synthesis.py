"""Private synthesis of the Adult table: errors of all two-way marginals, and classifiers trained on synthetic rows.

python benchmarks/synthesis.py FOLDER [--record]                     # FOLDER: train.csv.gz and test.csv.gz of UCI Adult
python benchmarks/synthesis.py --others [--record]           # three tables of the tests, against noisy histograms
python benchmarks/synthesis.py --scale ROWS COLUMNS [--record]       # one fit to a made table

14 columns (without fnlwgt); numbers in 20 equally wide bins of public ranges; 80 % of the 48,842 rows; delta = 1e-5.
TV2: mean total variation distance of the 91 two-way marginals to the training rows. AUC: gradient boosting trained on
synthetic rows and tested on the other 20 % of the real ones.

The other tables are a household survey (4,580 rows, 12 columns), electricity utilities (4,092, 11) and the Census file
(1,080, 13) of sdcMicro. Their numbers are synthesized as they are, on public ranges, and compared in 20 equally wide
bins. Independent noisy histograms spend the budget on these bins alone, in equal parts, with normal noise.
"""

from __future__ import annotations

import resource
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import Figures
from scipy.stats import t
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.dp.analytic_gaussian import squared_for
from sfumato.rationals import rational
from sfumato.synthesis import PrivateSynthesis
from sfumato.synthesis.residuals import project_to_simplex

RANGES = {"age": (17, 90), "capital-gain": (0, 99_999), "capital-loss": (0, 4356), "hours-per-week": (1, 99)}
BINS = 20
TARGET = "income"
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)


def coded(folder: Path) -> pl.DataFrame:
    """All rows as small whole numbers."""
    frame = pl.concat([pl.read_csv(folder / f"{part}.csv.gz", null_values=["?"]) for part in ("train", "test")]).drop(
        "fnlwgt"
    )
    columns = []
    for series in frame:
        if series.name in RANGES:
            low, high = RANGES[series.name]
            columns.append(((series - low) * BINS // (high - low + 1)).cast(pl.Int64).clip(0, BINS - 1))
        else:
            ranks = series.cast(pl.String).fill_null("?").rank("dense")
            columns.append((ranks - 1).cast(pl.Int64).alias(series.name))
    return pl.DataFrame(columns)


def tv2(real: pl.DataFrame, other: pl.DataFrame, sizes: dict[str, int]) -> float:
    """Mean total variation distance of all two-way marginals."""

    def shares(frame: pl.DataFrame, a: str, b: str) -> Any:
        cells = frame[a].to_numpy() * sizes[b] + frame[b].to_numpy()
        return np.bincount(cells, minlength=sizes[a] * sizes[b]) / frame.height

    pairs = combinations(real.columns, 2)
    return float(np.mean([np.abs(shares(real, a, b) - shares(other, a, b)).sum() / 2 for a, b in pairs]))


def auc(train: pl.DataFrame, test: pl.DataFrame) -> float:
    """Gradient boosting on the coded columns."""
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(train.drop(TARGET).to_numpy(), train[TARGET].to_numpy())
    return float(roc_auc_score(test[TARGET], model.predict_proba(test.drop(TARGET).to_numpy())[:, 1]))


def public_domains(sizes: dict[str, int]) -> dict[str, dict[str, Any]]:
    """The declared domain of every coded column."""
    ordered = {*RANGES, "education-num"}
    return {
        name: {"low": 0, "high": size - 1} if name in ordered else {"values": list(range(size))}
        for name, size in sizes.items()
    }


def half_width(figures: list[float]) -> float | None:
    """Half of the 95 % interval of a mean."""
    if len(figures) < 2:
        return None
    return float(t.ppf(0.975, len(figures) - 1) * np.std(figures, ddof=1) / len(figures) ** 0.5)


def adult(folder: Path) -> None:
    """Errors by mechanism and epsilon."""
    rows = coded(folder)
    sizes = {name: int(rows[name].max()) + 1 for name in rows.columns}  # type: ignore[arg-type]
    mixed = np.random.default_rng(0).permutation(rows.height)
    cut = int(0.8 * rows.height)
    real, test = rows[mixed[:cut]], rows[mixed[cut:]]
    data = Data.of(Table(frame=real), Schema(columns={}))
    table = Figures(
        "synthesis", "adult",
        {"mechanism": "", "epsilon": "g", "runs": "", "seconds": ".2f", "tv2": ".4f", "half": ".4f", "auc": ".3f",
         "pairs": ".0f", "memory": ".0f"},
        {"epsilon": "ε", "seconds": "CPU s", "tv2": "TV2", "half": "±", "auc": "AUC", "pairs": "pairs measured",
         "memory": "peak MB of the process"},
    )  # fmt: skip
    again = real[np.random.default_rng(1).integers(cut, size=cut)]
    table.add(mechanism="real rows", tv2=0.0, auc=auc(real, test))
    table.add(mechanism="bootstrap", tv2=tv2(real, again, sizes), auc=auc(again, test))
    for mechanism, runs in (("mst", dict.fromkeys(EPSILONS, 5)), ("adaptive", {**dict.fromkeys(EPSILONS, 1), 1.0: 5})):
        for epsilon in EPSILONS:
            step = PrivateSynthesis.build(
                {"epsilon": epsilon, "delta": 1e-5, "mechanism": mechanism, "domains": public_domains(sizes)}
            )
            found: dict[str, list[float]] = {"tv2": [], "auc": [], "pairs": [], "seconds": []}
            for run in range(runs[epsilon]):
                start = time.process_time()
                model = step.fit(data)
                made = model.sample(random=np.random.default_rng(run)).fill_null(0)
                found["seconds"].append(time.process_time() - start)
                found["tv2"].append(tv2(real, made, sizes))
                found["pairs"].append(sum(len(columns) == 2 for columns in model.estimates.measured))
                if run == 0 or epsilon == 1:
                    found["auc"].append(auc(made, test))
            table.add(
                mechanism=mechanism, epsilon=epsilon, runs=runs[epsilon], half=half_width(found["tv2"]),
                memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                **{name: float(np.mean(figures)) for name, figures in found.items()},
            )  # fmt: skip


SAMPLES = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"
OTHERS = {
    "household survey": ("testdata.csv", ("ori_hid", "sampling_weight", "household_weights")),
    "electricity": ("EIA.csv", ("UTILITYID", "UTILNAME", "YEAR", "STATE")),
    "census": ("CASCrefmicrodata.csv", ()),
}


def others() -> None:
    """Errors on tables of few rows with numbers, beside those of a bootstrap and of independent noisy histograms."""
    table = Figures(
        "synthesis", "others",
        {"data": "", "epsilon": "g", "tv2": ".3f", "half": ".3f", "independent": ".3f", "bootstrap": ".3f",
         "exact": ".3f", "seconds": ".2f"},
        {"data": "data set", "epsilon": "ε", "tv2": "TV2", "half": "±", "independent": "noisy histograms",
         "exact": "exact histograms", "seconds": "CPU s"},
    )  # fmt: skip
    random = np.random.default_rng(1)
    for name, (file, left_out) in OTHERS.items():
        real = pl.read_csv(SAMPLES / file, null_values=["NA"], infer_schema_length=10_000).drop(left_out)
        domains = {series.name: public_domain(series) for series in real}
        sizes = {n: BINS + 1 if "low" in domain else len(domain["values"]) + 1 for n, domain in domains.items()}
        binned = in_bins(real, domains)
        again = tv2(binned, binned[random.integers(real.height, size=real.height)], sizes)
        mixed = pl.DataFrame([series.shuffle(seed) for seed, series in enumerate(binned)])
        for epsilon in (0.1, 1.0, 5.0, 100.0):
            step = PrivateSynthesis.build({"epsilon": epsilon, "delta": 1e-5, "domains": domains})
            found, beside, start = [], [], time.process_time()
            data = Data.of(Table(frame=real), Schema(columns={}))
            for run in range(5):
                made = step.fit(data).sample(random=np.random.default_rng(run))
                found.append(tv2(binned, in_bins(made, domains), sizes))
            seconds = (time.process_time() - start) / 5
            for _ in range(5):
                beside.append(tv2(binned, noisy_histograms(binned, sizes, epsilon, random), sizes))
            table.add(
                data=name, epsilon=epsilon, tv2=float(np.mean(found)), half=half_width(found), bootstrap=again,
                independent=float(np.mean(beside)), exact=tv2(binned, mixed, sizes), seconds=seconds,
            )  # fmt: skip


def public_domain(series: pl.Series) -> dict[str, Any]:
    """A round range for numbers with many values, a list for others."""
    if series.n_unique() <= 30:
        return {"values": series.drop_nulls().unique().sort().to_list()}
    low, high = float(series.min()), float(series.max())  # type: ignore[arg-type]
    step = 10 ** np.floor(np.log10(high - low))
    return {"low": float(np.floor(low / step) * step), "high": float(np.ceil(high / step) * step)}


def in_bins(frame: pl.DataFrame, domains: dict[str, dict[str, Any]]) -> pl.DataFrame:
    """Codes: 0 is missing, then the bins of a range or the listed values."""
    columns = []
    for series in frame:
        domain = domains[series.name]
        if "low" in domain:
            share = (series.cast(pl.Float64) - domain["low"]) / (domain["high"] - domain["low"])
            codes = (share * BINS).floor().cast(pl.Int64).clip(0, BINS - 1) + 1
        else:
            codes = series.replace_strict({value: n + 1 for n, value in enumerate(domain["values"])}, default=0)
        columns.append(codes.cast(pl.Int64).fill_null(0))
    return pl.DataFrame(columns)


def noisy_histograms(rows: pl.DataFrame, sizes: dict[str, int], epsilon: float, random: np.random.Generator) -> Any:
    """Independent columns, each from counts with normal noise, projected to non-negative ones."""
    deviation = (rows.width / float(squared_for(rational(epsilon), rational(1e-5)))) ** 0.5
    columns = {}
    for series in rows:
        counts = np.bincount(series.to_numpy(), minlength=sizes[series.name])
        shares = project_to_simplex(counts + random.normal(scale=deviation, size=len(counts)), float(rows.height))
        columns[series.name] = random.choice(len(counts), rows.height, p=shares / shares.sum())
    return pl.DataFrame(columns)


def scale(rows: int, columns: int) -> None:
    """Time and memory of one fit to a made table."""
    random = np.random.default_rng(1)
    hidden = random.integers(0, 4, rows, dtype=np.int8)
    frame = pl.DataFrame(
        [
            pl.Series(f"c{n}", (hidden * (n % 3) + random.integers(0, 3 + n % 17, rows, dtype=np.int8)).astype(np.int8))
            for n in range(columns)
        ]
    )
    domains = {name: {"low": 0, "high": 40} for name in frame.columns}
    table = Figures(
        "synthesis", f"scale-{rows}-{columns}",
        {"rows": ",", "columns": "", "mechanism": "", "seconds": ".1f", "memory": ".0f", "table": ".0f"},
        {"seconds": "CPU s", "memory": "peak MB of the process", "table": "MB of the table"},
    )  # fmt: skip
    start = time.process_time()
    step = PrivateSynthesis.build({"epsilon": 1, "delta": 1e-9, "domains": domains})
    model = step.fit(Data.of(Table(frame=frame), Schema(columns={})))
    model.sample(random=random)
    table.add(
        rows=rows, columns=columns, mechanism="mst" if columns > 40 else "adaptive",
        seconds=time.process_time() - start, table=frame.estimated_size("mb"),
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )  # fmt: skip


if __name__ == "__main__":
    words = sys.argv[1:]
    if "--scale" in words:
        scale(int(words[words.index("--scale") + 1]), int(words[words.index("--scale") + 2]))
    elif "--others" in words:
        others()
    else:
        adult(Path(words[0]))
