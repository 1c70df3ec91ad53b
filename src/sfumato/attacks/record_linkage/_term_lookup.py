"""People in whose texts known terms occur, scored by the rarity of the terms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Guesses, View
from sfumato.attacks.normalize import canonical
from sfumato.attacks.record_linkage.sparse_linkage.scores import Events, Scratch, find
from sfumato.data.row_codes import first_rows, value_codes
from sfumato.deadline import batches
from sfumato.documents.text_vectors import words_of
from sfumato.progress import Progress

Ints = npt.NDArray[np.int64]
Occurrences = Callable[[pl.Series, pl.Series], pl.DataFrame]
"""From distinct texts and the terms looked for: ``text`` (position of the text) and ``code`` (position of the term)."""


def name_people(
    view: View, item: str, occurrences: Occurrences, *, threshold: float, task: str, progress: Progress,
    seen: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> Guesses:  # fmt: skip
    """For each target the person in whose texts most of their known terms occur, rare ones counting more.

    The known terms are a list per target in the column ``item``. A person is named only if their score exceeds the
    second best by ``threshold`` standard deviations of all scores. ``seen`` chooses rows that the attacker sees.
    """
    assert view.secret is not None
    table = view.release.table.frame
    unit, units = value_codes(table[view.secret])
    texts = canonical(table[item])
    number, distinct = value_codes(texts)
    rows = pl.DataFrame({"unit": unit, "text": number}).filter(texts.is_not_null())
    rows = rows if seen is None else seen(rows)
    wanted = view.targets[item].explode().drop_nulls().unique().sort()
    found = occurrences(distinct, wanted).unique()
    having = np.zeros(len(distinct), dtype=np.bool_)
    having[found["text"].to_numpy()] = True
    rows = rows.filter(pl.Series(having[rows["text"].to_numpy()])).unique()
    pairs = rows.join(found, on="text").select("unit", "code").unique().sort("unit", "code")
    none = np.zeros(pairs.height, dtype=np.uint8)
    events = Events.of(
        person=pairs["unit"].to_numpy().astype(np.int32),
        item=pairs["code"].to_numpy().astype(np.int32),
        rating=none,
        day=none.astype(np.int16),
        people=len(units),
        items=max(1, len(wanted)),
    )
    code = {term: position for position, term in enumerate(wanted.to_list())}
    return _named(view, item, events, code, first_rows(unit, len(units)).astype(np.int64), threshold, task, progress)


def _named(
    view: View, item: str, events: Events, code: dict[str, int], first: Ints, threshold: float, task: str,
    progress: Progress,
) -> Guesses:  # fmt: skip
    targets = view.targets[item].to_list()
    row, confidence = np.full(len(targets), -1, dtype=np.int64), np.zeros(len(targets))
    scratch, done = Scratch(events.people), 0
    for part, target in zip(batches(progress, task, len(targets)), targets, strict=False):
        known = np.array([code[one] for one in target], dtype=np.int32)
        blank = np.full(len(known), np.nan)
        best = find(events, known, blank, blank, rating_scale=1.0, day_scale=1.0, scratch=scratch)
        if best.person >= 0 and best.eccentricity >= threshold:
            row[part] = first[best.person]
            confidence[part] = min(1.0, best.eccentricity / (best.eccentricity + 1.0))
        done = part.stop
    return Guesses.of_rows(row, confidence, {"people": events.people, "words": len(code)}, tried=done)


def word_occurrences(texts: pl.Series, wanted: pl.Series) -> pl.DataFrame:
    """Each text with each wanted word that it contains."""
    frame = pl.DataFrame({"text": np.arange(len(texts)), "words": texts})
    spoken = frame.select("text", words_of(pl.col("words")).list.unique().alias("word")).explode("word")
    codes = pl.DataFrame({"word": wanted, "code": np.arange(len(wanted))}, schema_overrides={"word": pl.String})
    return spoken.join(codes, on="word").select("text", "code")
