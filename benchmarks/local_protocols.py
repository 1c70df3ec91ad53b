"""Frequency protocols with real reports: error against theory, coverage of the intervals, CPU seconds, report size.

python benchmarks/local_protocols.py [--record]                       # 1,000,000 people, 1,024 values, epsilon 1
python benchmarks/local_protocols.py --people 100000 --values 64
python benchmarks/local_protocols.py --stream 100000000               # Hadamard reports in parts, with peak memory
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from record import Figures

from sfumato.registry import registry


def streamed(count: int) -> None:
    """Tally ``count`` Hadamard reports in parts of a million."""
    protocol = registry("frequency-protocol").get("hadamard-response").build({"epsilon": 1, "values": 1024})
    part = protocol.randomize(np.arange(1_000_000) % 1024)
    tally = protocol.tally(part[:0])
    start = time.process_time()
    for _ in range(count // len(part)):
        tally = tally + protocol.tally(part)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures = Figures("local_protocols", "stream", {"reports": ",", "cpu": ".1f", "peak": ".2f"}, {"peak": "peak GB"})
    figures.add(reports=tally.reports, cpu=time.process_time() - start, peak=peak)
    figures.save()


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--people", type=int, default=1_000_000)
    reader.add_argument("--values", type=int, default=1024)
    reader.add_argument("--stream", type=int, default=0)
    given = reader.parse_args()
    if given.stream:
        streamed(given.stream)
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
