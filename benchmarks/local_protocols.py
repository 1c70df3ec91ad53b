"""Frequency protocols with real reports: error against theory, coverage of the intervals, CPU seconds, report size.

python benchmarks/local_protocols.py [--record]                       # 1,000,000 people, 1,024 values, epsilon 1
python benchmarks/local_protocols.py --people 100000 --values 64
python benchmarks/local_protocols.py --stream 100000000               # Hadamard reports from files, with peak memory
python benchmarks/local_protocols.py --stream 100000000 --engine duckdb
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from record import Figures

from sfumato.collecting.collector import Collection
from sfumato.collecting.device import SURVEY_KEY
from sfumato.collecting.survey import Survey
from sfumato.registry import registry

SITES = ", ".join(f"s{i}" for i in range(1024))
QUESTIONS = f"{{site: {{values: [{SITES}], protocol: hadamard-response}}}}"
SURVEY = f"{{survey: sites, epsilon: 1, people: 100000000, questions: {QUESTIONS}}}"


def streamed(count: int, engine: str) -> None:
    """Count ``count`` Hadamard reports from Parquet files of ten million; the files are written by another process."""
    from sfumato.collecting.report_scan import parquet_files, tally_reports

    survey = Survey.parse(SURVEY)
    with tempfile.TemporaryDirectory() as text:
        writer = get_context("spawn").Process(target=written, args=(text, count))
        writer.start()
        writer.join()
        files = parquet_files([Path(text)])
        size = sum(file.stat().st_size for file in files)
        start, wall = time.process_time(), time.perf_counter()
        if engine == "none":
            collection = Collection(survey)
            for file in files:
                collection.add_file(file)
        else:
            collection = tally_reports(engine, survey, files)
        spent, waited = time.process_time() - start, time.perf_counter() - wall
        assert collection.reports == count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    forms = {"engine": "", "reports": ",", "size": ".2f", "cpu": ".1f", "wall": ".1f", "peak": ".2f"}
    titles = {"size": "GB of files", "cpu": "CPU s", "wall": "s", "peak": "peak GB"}
    figures = Figures("local_protocols", "stream" if engine == "none" else f"stream-{engine}", forms, titles)
    figures.add(engine=engine, reports=count, size=size / 1e9, cpu=spent, wall=waited, peak=peak)
    figures.save()


def written(folder: str, count: int) -> None:
    """Files of at most ten million reports each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    survey = Survey.parse(SURVEY)
    protocol = survey.protocols()["site"]
    draw = np.random.default_rng(1)
    metadata = {SURVEY_KEY: survey.fingerprint().encode()}
    schema = pa.schema([("question", pa.string()), ("report", pa.binary())], metadata=metadata)
    for place in range(0, count, 10_000_000):
        with pq.ParquetWriter(Path(folder) / f"{place}.parquet", schema) as file:
            for start in range(place, min(place + 10_000_000, count), 1_000_000):
                size = min(1_000_000, count - start)
                reports = protocol.randomize(np.minimum(draw.zipf(1.3, size) - 1, 1023))
                offsets = np.arange(0, reports.nbytes + 1, reports.shape[1], dtype=np.int32)
                buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(reports))]
                column = pa.Array.from_buffers(pa.binary(), size, buffers)
                asked = pa.DictionaryArray.from_arrays(pa.array(np.zeros(size, np.int8)), ["site"]).cast(pa.string())
                file.write_table(pa.Table.from_arrays([asked, column], schema=schema))


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--people", type=int, default=1_000_000)
    reader.add_argument("--values", type=int, default=1024)
    reader.add_argument("--stream", type=int, default=0)
    reader.add_argument("--engine", choices=["none", "duckdb"], default="none")
    given = reader.parse_args()
    if given.stream:
        streamed(given.stream, given.engine)
        return
    codes = np.minimum(np.random.default_rng(1).zipf(1.3, given.people) - 1, given.values - 1)
    true = np.bincount(codes, minlength=given.values)
    forms = {"protocol": "", "mse": ".3f", "theory": ".3f", "covered": ".1%", "device": ".2f", "collector": ".2f"}
    titles = {"mse": "MSE / n", "device": "CPU s, devices", "collector": "CPU s, collector", "bytes": "bytes a report"}
    figures = Figures("local_protocols", "frequencies", {**forms, "bytes": ","}, titles)
    for cls in registry("frequency-protocol"):
        if cls.part_name() == "subset-selection" and given.people * given.values > 2**28:
            continue  # draws a random order of all values for each person; as precise as unary encoding
        extra = {"size": 1024, "hashes": 64, "salt": "benchmark"} if "salt" in cls.model_fields else {}
        protocol = cls.build({"epsilon": 1, "values": given.values, **extra})
        warm = protocol.randomize(codes[:100])
        protocol.tally(warm)
        start = time.process_time()
        reports = protocol.randomize(codes)
        randomized = time.process_time()
        estimate = protocol.estimate(protocol.tally(reports))
        figures.add(
            protocol=cls.part_name(),
            mse=float(np.mean((estimate.counts - true) ** 2)) / given.people,
            theory=protocol.variance(given.people, 1 / given.values) / given.people,
            covered=float(np.mean((estimate.low <= true) & (true <= estimate.high))),
            device=randomized - start,
            collector=time.process_time() - randomized,
            bytes=protocol.width,
        )
    figures.save()


if __name__ == "__main__":
    main()
