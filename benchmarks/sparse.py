"""The sparse attack at the size of the Netflix prize: 480,000 people, 18,000 things, 100 million ratings.

    python benchmarks/sparse.py [people] [things] [ratings] [known]

Ratings are drawn, popular things more often; prints time per target, the share found, and the peak memory.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from sfumato.attacks.record_linkage.sparse_linkage.scores import Events, Scratch, find


def main(people: int = 480_000, things: int = 18_000, ratings: int = 100_000_000, known: int = 8) -> None:
    draw = np.random.default_rng(1)
    # The most popular thing has 0.14 percent of all ratings; in the Netflix file it was 0.23.
    popularity = np.cumsum((np.arange(things) + 300.0) ** -1.3)
    popularity /= popularity[-1]
    person = np.empty(ratings, dtype=np.int32)
    item, rating = np.empty(ratings, dtype=np.int32), np.empty(ratings, dtype=np.uint8)
    day = np.empty(ratings, dtype=np.int16)
    for start in range(0, ratings, 5_000_000):
        part = slice(start, min(ratings, start + 5_000_000))
        size = part.stop - part.start
        person[part] = draw.integers(people, size=size, dtype=np.int32)
        item[part] = np.searchsorted(popularity, draw.random(size)).clip(0, things - 1)
        rating[part] = draw.integers(1, 6, size=size, dtype=np.uint8)
        day[part] = draw.integers(0, 2200, size=size, dtype=np.int16)
    targets = []
    for who in draw.choice(people, 200, replace=False):
        rows = np.flatnonzero(person == who)
        rows = draw.permutation(rows)[:known]
        targets.append(
            (who, item[rows], rating[rows].astype(float), day[rows] + draw.integers(-14, 15, len(rows)) * 1.0)
        )
    started = time.perf_counter()
    events = Events.of(person=person, item=item, rating=rating, day=day, people=people, items=things)
    print(f"index: {time.perf_counter() - started:.1f} s")
    del person, item, rating, day
    scratch = Scratch(people)
    find(events, *targets[0][1:], rating_scale=1.5, day_scale=30.0, scratch=scratch)  # compile
    times, spent, right = [], [], 0
    for who, things_known, stars, days in targets:
        started, used = time.perf_counter(), time.process_time()
        found = find(events, things_known, stars, days, rating_scale=1.5, day_scale=30.0, scratch=scratch)
        times.append(time.perf_counter() - started)
        spent.append(time.process_time() - used)
        right += found.person == who and found.eccentricity >= 1.5
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"per target: median {1000 * np.median(times):.1f} ms, slowest {1000 * max(times):.1f} ms")
    print(f"CPU per target: median {1000 * np.median(spent):.1f} ms, slowest {1000 * max(spent):.1f} ms")
    print(f"found, knowing {known} ratings with dates within 14 days: {right / len(targets):.3f}")
    print(f"peak memory: {peak:.2f} GB")


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
