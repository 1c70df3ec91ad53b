"""Optimal k-anonymity on Adult: our search beside ARX's figures, or beside ARX itself.

    python benchmarks/generalize.py [--record]            # 9 quasi-identifiers, 12,960 combinations of levels
    python benchmarks/generalize.py --rows 1000000        # a bootstrap of Adult, a tenth of the cells redrawn
    python benchmarks/generalize.py --closeness [--record]  # 8 quasi-identifiers, k = 5 and t-closeness 0.2
    python benchmarks/generalize.py --wide 20             # 20 quasi-identifiers, 20 seconds, distance to the bound
    python benchmarks/generalize.py --arx libarx-3.9.2.jar

Prints CPU milliseconds of the search alone (the compressed table is at hand, as ARX's encoded data is), the median of
several runs after one that loads the compiled kernels, and the best of them. The figures of ARX 3.9.2 (Java, warm, the
search alone) were taken on a machine of two cores that was busy, so they are upper bounds: with ``--arx`` it runs here
and now, on the same data, and the ratio is a fair one. Needs a Java compiler on the path for that. ``--arx`` also takes
a class path of several folders and jars.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from record import Figures

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.metrics.loss import Loss
from sfumato.masking.model import PrivacyModel
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.search.lattice.heuristic import search as look
from sfumato.masking.search.lattice.level_range import LevelRange, SearchResult
from sfumato.masking.search.lattice.optimal import search
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.rationals import floor_share
from sfumato.rng import Rng

ADULT = Path(__file__).parents[1] / "tests" / "samples" / "adult"
SIZES = (2, 5, 10, 25)
ARX_CPU_MS = {(5, 0.0): (62, 50), (5, 0.05): (1732, 1454), (5, 1.0): (6810, 5971)}
"""k and suppression limit: median and best."""
DISTANCES: tuple[Literal["equal", "hierarchical"], ...] = ("equal", "hierarchical")
ARX_MILLION = {(5, 0.0): 1280, (5, 0.05): 18400}


def frame(rows: int | None) -> pl.DataFrame:
    """Adult, or a bootstrap of it in which a tenth of the cells of each column is redrawn from that column."""
    adult = pl.read_csv(ADULT / "adult.csv")
    if rows is None:
        return adult
    draw = np.random.default_rng(1)
    out = adult[draw.integers(0, adult.height, rows).tolist()]
    columns = []
    for name in adult.columns:
        other = adult[name].gather(draw.integers(0, adult.height, rows))
        columns.append(out[name].zip_with(pl.Series(draw.random(rows) >= 0.1), other))
    return pl.DataFrame(columns)


def dataset(table: pl.DataFrame, sensitive: str | None = None) -> Data:
    columns = {
        name: Column(
            role=Role.SENSITIVE if name == sensitive else Role.QUASI,
            hierarchy={"file": str(ADULT / f"adult_hierarchy_{name}.csv")},
        )
        for name in table.columns
    }
    return Data.of(Table(frame=table), Schema(columns=columns))


def once(table: EquivalenceClasses, share: float, *models: PrivacyModel) -> tuple[float, SearchResult]:
    started = time.process_time()
    rules = tuple(model.bind(table) for model in models)
    space = LatticeSpace(table, rules, Loss(), limit=floor_share(share, table.rows))
    found = search(space, LevelRange(low=(0,) * len(table.columns), high=table.heights))
    return 1000 * (time.process_time() - started), found


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=None)
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--wide", type=float, default=None, metavar="SECONDS")
    arguments.add_argument("--closeness", action="store_true")
    arguments.add_argument("--arx", type=Path, default=None, help="ARX's jar")
    given = arguments.parse_args()
    if given.wide is not None:
        wide(given.wide)
        return
    rows = frame(given.rows)
    if given.closeness:
        closeness(rows, given.runs, given.arx)
        return
    data = dataset(rows)
    compress(data)
    started = time.process_time()
    table = compress(data)
    print(
        f"{table.rows:,} rows, {len(table):,} distinct combinations, grouped in "
        f"{1000 * (time.process_time() - started):.0f} ms CPU"
    )
    theirs = run_arx(given.arx, rows, given.runs, *map(str, SIZES)) if given.arx else {}
    forms = {"k": "d", "suppression": ".0%", "score": ".6f", "judged": ",", "ms": ".1f", "arx": ",.0f", "ratio": ".1f"}
    titles = {"judged": "nodes judged", "ms": "CPU ms", "arx": "ARX, CPU ms"}
    figures = Figures("generalize", "adult" if given.rows is None else f"bootstrap_{given.rows}", forms, titles)
    for k in SIZES:
        for share in (0.0, 0.05, 1.0):
            once(table, share, KAnonymity(k=k))
            runs = [once(table, share, KAnonymity(k=k)) for _ in range(given.runs)]
            best = runs[0][1].best
            assert best is not None
            assert runs[0][1].optimal
            ours = statistics.median(ms for ms, _ in runs)
            peer = theirs.get((str(k), share), {}).get("ms")
            if peer is None:
                known = ARX_MILLION.get((k, share)) if given.rows else ARX_CPU_MS.get((k, share), (None,))[0]
                peer = known if given.rows in (None, 1_000_000) else None
            elif theirs[str(k), share]["levels"] != ",".join(map(str, best.levels)):
                print(f"      ARX found {theirs[str(k), share]['levels']} with {theirs[str(k), share]['loss']}")
            judged, ratio = runs[0][1].evaluated, peer / ours if peer else None
            figures.add(k=k, suppression=share, score=best.score, judged=judged, ms=ours, arx=peer, ratio=ratio)


def closeness(rows: pl.DataFrame, runs: int, arx: Path | None) -> None:
    """5-anonymity with t-closeness 0.2 of the occupation: 8 quasi-identifiers, 4,320 combinations of levels."""
    table = compress(dataset(rows, "occupation"), track=("occupation",))
    theirs = run_arx(arx, rows, runs, *DISTANCES) if arx else {}
    forms = {"distance": "", "suppression": ".0%", "score": ".6f", "judged": ",", "ms": ".1f", "arx": ",.0f"}
    titles = {"judged": "nodes judged", "ms": "CPU ms", "arx": "ARX, CPU ms"}
    figures = Figures("generalize", "closeness", {**forms, "ratio": ".1f"}, titles)
    for distance in DISTANCES:
        models = KAnonymity(k=5), TCloseness(t=0.2, distance=distance)
        for share in (0.0, 0.05, 1.0):
            once(table, share, *models)
            timed = [once(table, share, *models) for _ in range(runs)]
            best = timed[0][1].best
            assert best is not None
            ours, peer = statistics.median(ms for ms, _ in timed), theirs.get((distance, share), {})
            assert not peer or peer["levels"] == ",".join(map(str, best.levels))
            ms = peer.get("ms")
            figures.add(distance=distance, suppression=share, score=best.score, judged=timed[0][1].evaluated, ms=ours,
                        arx=ms, ratio=ms / ours if ms else None)  # fmt: skip


def wide(seconds: float) -> None:
    """Adult beside bootstraps of itself: 20 columns, 1.7 billion combinations of levels."""
    parts = [frame(None), frame(30_162), frame(30_162).reverse()]
    table = pl.concat(
        [part.rename({n: f"{n} {i}" for n in part.columns}) for i, part in enumerate(parts)], how="horizontal"
    )
    table = table.select(table.columns[:20])
    columns = {
        name: Column(role=Role.QUASI, hierarchy={"file": str(ADULT / f"adult_hierarchy_{name.split()[0]}.csv")})
        for name in table.columns
    }
    classes = compress(Data.of(Table(frame=table), Schema(columns=columns)))
    within = LevelRange(low=(0,) * len(classes.columns), high=classes.heights)
    print(
        f"{classes.rows:,} rows, {len(classes.columns)} quasi-identifiers, {within.nodes:,} combinations, {seconds:g} s"
    )
    for share in (0.0, 0.05, 1.0):
        space = LatticeSpace(classes, (KAnonymity(k=5).bind(classes),), Loss(), limit=floor_share(share, classes.rows))
        started = time.perf_counter()
        found = look(space, within, seconds=seconds, rng=Rng(1))
        assert found.best is not None
        print(
            f"  k=5, {share:4.0%}: loss {found.best.score:.4f}, no combination below {found.bound:.4f}; "
            f"{found.evaluated:,} judged in {time.perf_counter() - started:.1f} s"
        )


# --- the peer -------------------------------------------------------------------------------------------------------

JAVA = """
import org.deidentifier.arx.*;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.criteria.*;
import org.deidentifier.arx.metric.Metric;
import java.lang.management.ManagementFactory;
import com.sun.management.OperatingSystemMXBean;
import java.nio.charset.StandardCharsets;

public class Peer {
  public static void main(String[] args) throws Exception {
    String folder = args[0], csv = args[1];
    int runs = Integer.parseInt(args[2]);
    String[] names = args[3].split("/");
    OperatingSystemMXBean machine = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    for (String model : args[4].split("/")) for (double limit : new double[] {0d, 0.05d, 1d}) {
      double[] times = new double[runs];
      String levels = ""; String loss = "";
      for (int run = -3; run < runs; run++) {
        Data data = Data.create(csv, StandardCharsets.UTF_8, ',');
        boolean close = !Character.isDigit(model.charAt(0));
        ARXConfiguration config = ARXConfiguration.create();
        config.addPrivacyModel(new KAnonymity(close ? 5 : Integer.parseInt(model)));
        for (String name : names) {
          Hierarchy tree = Hierarchy.create(folder + "/adult_hierarchy_" + name + ".csv", StandardCharsets.UTF_8, ';');
          boolean secret = close && name.equals("occupation");
          data.getDefinition().setAttributeType(name, secret ? AttributeType.SENSITIVE_ATTRIBUTE : tree);
          if (secret) config.addPrivacyModel(model.equals("equal")
            ? new EqualDistanceTCloseness(name, 0.2d) : new HierarchicalDistanceTCloseness(name, 0.2d, tree));
        }
        config.setSuppressionLimit(limit);
        config.setQualityModel(Metric.createLossMetric());
        ARXAnonymizer anonymizer = new ARXAnonymizer();
        data.getHandle();
        long before = machine.getProcessCpuTime();
        ARXResult result = anonymizer.anonymize(data, config);
        if (run >= 0) times[run] = (machine.getProcessCpuTime() - before) / 1e6;
        ARXLattice.ARXNode best = result.getGlobalOptimum();
        loss = best.getHighestScore().toString();
        StringBuilder text = new StringBuilder();
        for (String name : names) if (!close || !name.equals("occupation"))
          text.append(text.length() > 0 ? "," : "").append(best.getGeneralization(name));
        levels = text.toString();
      }
      java.util.Arrays.sort(times);
      System.out.println("{\\"model\\":\\"" + model + "\\",\\"limit\\":" + limit + ",\\"ms\\":" + times[runs / 2]
        + ",\\"loss\\":\\"" + loss + "\\",\\"levels\\":\\"" + levels + "\\"}");
    }
  }
}
"""


def run_arx(jar: Path, rows: pl.DataFrame, runs: int, *models: str) -> dict[tuple[str, float], dict[str, Any]]:
    """ARX on the same rows in this very run: CPU time of the whole process while it anonymizes, warm.

    A model is the k of k-anonymity, or the distance of t-closeness 0.2 beside k = 5.
    """
    if shutil.which("javac") is None:
        raise SystemExit("--arx needs javac and java on the path")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "Peer.java").write_text(JAVA)
        rows.write_csv(place / "rows.csv")
        subprocess.run(["javac", "-cp", str(jar), "-d", folder, str(place / "Peer.java")], check=True)
        said = subprocess.run(
            ["java", "-cp", f"{folder}:{jar}", "Peer", str(ADULT), str(place / "rows.csv"), str(runs),
             "/".join(rows.columns), "/".join(models)],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {(line["model"], line["limit"]): line for line in lines}


if __name__ == "__main__":
    main()
