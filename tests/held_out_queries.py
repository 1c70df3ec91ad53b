"""Synthetic queries with known identifiers, to measure the recall of the detector.

Words, towns, names and ways of asking share nothing with :mod:`sfumato.demos.corpora.synthetic_log`, and were chosen
without the lists of the detector. The detector was later extended with them; :func:`more_held_out_queries` are queries
that it was not extended with.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.rng import Rng

__all__ = ["held_out_queries"]

_GIVEN = (
    "abdul adunni alice astrid benedikt carmen charlotte chiamaka david delphine diego edward farah fiona george gwen "
    "henrik ingrid jane jerzy john kavita kenji kofi lucy maeve margaret matteo naomi omar paul ravi rhys simon tomasz "
    "ulrike victor winston yuki zara"
)
_FAMILY = (
    "afolabi baptiste bell bergmann brown chen cohen cooper devlin diallo ferrari fontaine garcia green gruber hassan "
    "hill iyer kamau khan king kovacs larsen lee marchetti martin mensah nielsen osei park popescu robinson santos "
    "shah silva tanaka thompson torres vogel weber white wood young zhou"
)
_TOWNS = ("akron", "bath", "boise", "cork", "duluth", "el paso", "fargo", "galway", "hull", "laredo", "macon",
          "newport", "ogden", "peoria", "reno", "salem", "tacoma", "utica", "waco", "yuma")  # fmt: skip
_STATES = ("ohio", "tx", "mn", "ia", "nevada", "oregon", "wa", "new york", "az", "il")
_OTHER = ("knitting patterns", "why do cats purr", "cheap laptop", "learn chess", "muffin recipe", "bus timetable",
          "symptoms of flu", "how tall is a giraffe", "wedding songs", "paint for bathroom", "used tractors",
          "best running watch", "lyrics happy birthday", "garden fence ideas")  # fmt: skip
_ASKED = {
    "name": ("{first} {last}", "{first} {last} {town}", "who is {first} {last}", "{first} {last} obituary",
             "{last} family tree", "facebook {first} {last}", "{first}{last}", "dr {last} dentist"),
    "place": ("{town} {state} library", "jobs in {town}", "{town} {state}", "houses for sale {zip}",
              "{house} {town} avenue", "pizza near {town}", "dmv {town}, {state}"),
    "account": ("{card}", "is {card} a valid card", "my ssn {ssn}", "{ssn}"),
    "contact": ("{first}.{last}@mail.example", "who called from {phone}", "{phone}", "reverse lookup {plain}"),
}  # fmt: skip


def held_out_queries(count: int, *, seed: int) -> pl.DataFrame:
    """Draw queries: ``query`` and ``kind``, which is null for half of them.

    >>> held_out_queries(100, seed=1).columns
    ['query', 'kind']
    """
    draw = Rng(seed).child("held-out queries").generator
    rows = [_query(draw) for _ in range(count)]
    return pl.DataFrame(rows, schema={"query": pl.String, "kind": pl.String}, orient="row")


def _query(draw: np.random.Generator) -> tuple[str, str | None]:
    def pick(values: tuple[str, ...] | list[str]) -> str:
        return values[int(draw.integers(len(values)))]

    if draw.random() < 0.5:
        return pick(_OTHER), None
    kind = pick(list(_ASKED))
    digits = "".join(map(str, draw.integers(0, 10, 12)))
    card = pick(("4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "6011000000000004"))
    text = pick(_ASKED[kind]).format(
        first=pick(_GIVEN.split()), last=pick(_FAMILY.split()), town=pick(_TOWNS), state=pick(_STATES), card=card,
        zip=f"{draw.integers(10_000, 99_999)}", house=draw.integers(1, 3000), ssn=f"219-09-{draw.integers(1000, 9999)}",
        phone=f"({digits[:3]}) 555-{digits[3:7]}", plain=f"{digits[:3]}555{digits[3:7]}",
    )  # fmt: skip
    return text, kind
