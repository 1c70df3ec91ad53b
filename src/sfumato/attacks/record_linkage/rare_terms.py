"""Re-identification of texts by rare terms."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.record_linkage._term_lookup import name_people, word_occurrences
from sfumato.documents.text_findings import find_identifiers
from sfumato.documents.text_vectors import words_of
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Ints = npt.NDArray[np.int64]


class RareTerms(UnitLinking):
    """An attacker who knows what is unusual about a person looks for these words in the texts: a beekeeper with gout.

    The attacker knows the ``terms`` rarest words of the person's own original texts, after the direct identifiers that
    the rules find are taken out: what a colleague or a newspaper knows about the case, and the worst case. The best
    match is named only if its score exceeds the second best by ``threshold`` standard deviations of all scores.
    """

    examples = ({"item": "film", "terms": 6},)
    reference: ClassVar[str] = (
        "Sánchez, D., Batet, M. (2016). C-sanitized: a privacy model for document redaction and sanitization. "
        "doi:10.1002/asi.23363"
    )

    item: str
    """Column with the texts."""
    terms: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of rare words that the attacker knows about each person."""
    threshold: Annotated[float, Field(ge=0)] = 0.5
    """Minimum eccentricity of the best match: the gap to the second best in standard deviations of all scores."""

    @property
    def event_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def setting(self) -> str:
        return f"{self.terms} words"

    def known_events(self, original: pl.DataFrame, owner: Ints, people: Ints, rng: Rng) -> pl.DataFrame:
        texts = pl.DataFrame({"who": owner, "text": original[self.item].cast(pl.String)}).drop_nulls()
        words = texts.select("who", words_of(pl.col("text")).list.unique().alias("word")).explode("word").unique()
        common = words.group_by("word").len("people")
        mine = texts.filter(pl.col("who").is_in(pl.Series(people).implode()))
        plain = mine.with_columns(pl.Series("text", [_without_identifiers(text) for text in mine["text"]], pl.String))
        own = plain.select("who", words_of(pl.col("text")).alias("word")).explode("word").drop_nulls().unique()
        rare = (
            own.join(common, on="word")
            .sort("who", "people", "word")
            .group_by("who", maintain_order=True)
            .agg(pl.col("word").head(self.terms).alias(self.item))
        )
        found = pl.DataFrame({"who": people}).join(rare, on="who", how="left", maintain_order="left")
        return found.select(pl.col(self.item).fill_null([]))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        return name_people(
            view, self.item, word_occurrences, threshold=self.threshold, task="rare terms", progress=progress
        )


def _without_identifiers(text: str) -> str:
    at, parts = 0, []
    for found in (one for one in find_identifiers(text) if one.kind != "age"):
        parts.append(text[at : found.start])
        at = found.end
    return " ".join([*parts, text[at:]])
