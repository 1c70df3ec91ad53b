"""Identifiers that de-identification left in texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import polars as pl

from sfumato.data import read
from sfumato.errors import BadParameter, NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.stats import wilson


class TextRecall(Measure):
    """The share of known identifiers that no longer stand in the released texts, by kind.

    ``annotations`` is a file with the columns ``kind`` and ``text`` and the column ``identity`` of the original: what a
    reader marked in a sample of the texts. An identifier is removed if it is nowhere in the released texts of that
    person or row. Without annotations, the words of the original's identifier columns are looked up in the texts of
    their row: only what the owner knows already. Identifiers that nobody marked are not counted.
    """

    about: ClassVar[About] = About.DISCLOSURE
    better = "high"
    label: ClassVar[str] = "identifiers removed from texts"
    percentage: ClassVar[bool] = True
    examples = ({"column": "diagnosis"},)
    reference: ClassVar[str] = (
        "Pilán, I. et al. (2022). The text anonymization benchmark (TAB). doi:10.1162/coli_a_00458"
    )

    column: str
    """Column with the texts."""
    annotations: InputFile | None = None
    """File with known identifiers: ``kind``, ``text`` and the column ``identity``."""
    identity: str | None = None
    """Column that identifies a person or row in the annotations and in the original. Default: the recipe's ``unit``."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        pair.release.table.require([self.column])
        if pair.lineage is None:
            raise NotApplicable(
                "Recall needs the row correspondence between original and release.",
                fix="Pass the row map (`lineage`) that was written with the release.",
            )
        known = self._annotated(pair) if self.annotations is not None else self._own(pair)
        found, total = Counter[str](), Counter[str]()
        for kind, text, released in known:
            total[kind] += 1
            found[kind] += not any(_stands(text, one) for one in released)
        if not total:
            raise NotApplicable(
                "No identifier of these texts is known.",
                fix="Have a reader mark identifiers in a sample of the texts, and name the file as `annotations`.",
            )
        low, high = wilson(sum(found.values()), sum(total.values()))
        return MeasureResult(
            measure=self.part_name(),
            value=sum(found.values()) / sum(total.values()),
            columns={kind: found[kind] / total[kind] for kind in sorted(total)},
            low=low,
            high=high,
            detail={
                "by": "kind of identifier",
                "intervals": {kind: list(wilson(found[kind], total[kind])) for kind in sorted(total)},
                "known": dict(sorted(total.items())),
            },
        )

    def _own(self, pair: ReleasePair) -> Iterator[tuple[str, str, list[str]]]:
        """Words of identifier columns that the original text of the row contains."""
        assert pair.lineage is not None
        rows = pair.lineage.rows
        original = pair.original.table.frame[self.column].cast(pl.String)
        released = pair.masked[self.column].cast(pl.String)
        for name in pair.original.identifiers:
            if name in (self.column, pair.original.schema.unit):
                continue
            values = pair.original.table.frame[name].cast(pl.String)
            for place in np.flatnonzero(rows >= 0):
                before, after, value = original[int(rows[place])], released[int(place)], values[int(rows[place])]
                for word in set((value or "").split()):
                    if len(word) > 2 and before is not None and _stands(word, before):
                        yield name, word, [after or ""]

    def _annotated(self, pair: ReleasePair) -> Iterator[tuple[str, str, list[str]]]:
        assert pair.lineage is not None
        assert self.annotations is not None
        identity = self.identity or pair.original.schema.unit
        if identity is None:
            raise BadParameter(
                "text-recall: `identity` is required with annotations.",
                fix="Name the column that identifies a person or row in the annotations and in the original.",
            )
        table = read(self.annotations)
        table.require([identity, "kind", "text"])
        pair.original.table.require([identity])
        rows = pair.lineage.rows
        place = np.flatnonzero(rows >= 0)
        whose = pair.original.table.frame[identity].cast(pl.String).gather(rows[place])
        texts = pair.masked[self.column].cast(pl.String).fill_null("").gather(place)
        released: dict[str, list[str]] = {}
        for who, text in zip(whose, texts, strict=True):
            released.setdefault(who, []).append(text)
        columns = (table.frame[name].cast(pl.String).fill_null("") for name in (identity, "kind", "text"))
        for who, kind, text in zip(*columns, strict=True):
            if text.strip() and who in released:
                yield kind, text, released[who]


def _stands(text: str, released: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text)}(?!\w)", released, re.IGNORECASE) is not None
