"""Synthetic queries with known identifiers, written before the detector's dictionaries were extended.

Half of the queries are not identifying, and most of those contain a word that is also a name. The detector was not
changed by what is measured here. Names are those of no other collection, and none was looked up in a list.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.rng import Rng

__all__ = ["more_held_out_queries"]

_GIVEN = (
    "agnieszka amit beatrice brenda bronwyn callum cheryl daisuke deborah dolores emeka esther fatoumata frances "
    "gareth gerald gladys imran irene ivana joyce kelechi kenneth lachlan leticia lorraine mehmet miriam nadia "
    "nigel obinna paulette pradeep raymond roisin rosa saskia sergio tobias usha valerie wendell xavier yolanda zofia"
)
_FAMILY = (
    "abbott adeyemi bakker bhatt bianchi carver castellanos dubois eriksen fairweather fitzgerald gallagher goldberg "
    "hashimoto hughes ibrahim jarvis kaminski kowalczyk lindholm macleod mccarthy morales nakamura novak olofsson "
    "pereira petrov prescott ramirez reddy rossi sandoval schreiber sinclair takahashi thornton underwood vasquez "
    "whitaker yilmaz zimmerman"
)
_ASKED = ("{first} {last}", "{first} {initial} {last}", "{first} {last} attorney", "{last} {first}",
          "{first} {last} age", "is {first} {last} married", "{first} {last} myspace", "{last} obituaries",
          "professor {last}", "{first} {last} 1974", "{last} funeral home", "phone number for {first} {last}",
          "mrs {last} 4th grade", "{first}_{last}")  # fmt: skip
_OTHER = (
    "will there be rain",
    "may day",
    "rose bushes for shade",
    "grant applications",
    "mark a calendar",
    "april fools",
    "jordan shoes",
    "victoria secret",
    "charlotte airport parking",
    "paris hotels",
    "madison square garden",
    "olive oil",
    "virginia beach",
    "mercedes benz parts",
    "jack russell terrier",
    "bill pay online",
    "frank sinatra lyrics download",
    "angel food cake",
    "kelly blue book",
    "martha stewart recipes",
    "carolina panthers schedule",
    "king size bed",
    "hunter boots",
    "miller lite",
    "johnson controls",
    "wells fargo login",
    "cooper tires",
    "taylor guitars",
    "ford focus",
    "st patrick day crafts",
    "dora the explorer games",
    "barbie dolls",
    "bob the builder party",
    "harry potter book",
    "home depot",
    "free solitaire",
    "side effects of ibuprofen",
    "toyota camry",
    "lasagna",
    "how to tie a tie",
    "mortgage calculator",
    "horoscope leo",
    "dog with red eyes",
    "cheap flights",
    "unit conversion",
    "spanish verbs",
    "tax brackets",
    "used honda civic",
    "chicken casserole",
    "sore throat",
    "crossword answers",
    "playlist for running",
)


def more_held_out_queries(count: int, *, seed: int) -> pl.DataFrame:
    """Draw queries: ``query`` and ``kind``, which is ``name``, or null for half of them.

    >>> more_held_out_queries(100, seed=1)["kind"].unique().sort().to_list()
    [None, 'name']
    """
    draw = Rng(seed).child("more held-out queries").generator
    rows = [_query(draw) for _ in range(count)]
    return pl.DataFrame(rows, schema={"query": pl.String, "kind": pl.String}, orient="row")


def _query(draw: np.random.Generator) -> tuple[str, str | None]:
    def pick(values: tuple[str, ...] | list[str]) -> str:
        return values[int(draw.integers(len(values)))]

    if draw.random() < 0.5:
        return pick(_OTHER), None
    first, last = pick(_GIVEN.split()), pick(_FAMILY.split())
    return pick(_ASKED).format(first=first, last=last, initial="abcdefghijklmnoprstw"[int(draw.integers(20))]), "name"
