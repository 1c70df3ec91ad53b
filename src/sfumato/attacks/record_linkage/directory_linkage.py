"""Record linkage of search logs with a directory of people (the AOL attack)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.record_linkage._outside_texts import outside_rows
from sfumato.attacks.record_linkage._term_lookup import name_people, word_occurrences
from sfumato.documents.text_vectors import words_of
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Ints = npt.NDArray[np.int64]


class DirectoryLinkage(UnitLinking):
    """An attacker with a directory of people looks for the pseudonym whose searches contain a person's name and town.

    People search for themselves, their relatives and what is near them. Every word that the directory has about a
    person is looked up in all queries of the log; rare words count more. The best match is named only if its score
    exceeds the second best by ``threshold`` standard deviations of all scores. A single query is seldom enough:
    ``queries`` limits how many of each person the attacker sees, which shows how identification grows with the log.
    Without a directory, the attacker knows the words of a few of the person's own queries, the worst case.
    """

    examples = ({"item": "film", "events": 6},)
    reference: ClassVar[str] = (
        "Jones, R., Kumar, R., Pang, B., Tomkins, A. (2007). I know what you did last summer: query logs and user "
        "privacy. doi:10.1145/1321440.1321573"
    )

    item: str
    """Column with the texts: queries, messages, titles."""
    directory: InputFile | None = None
    """File with one row per person: a telephone book, a register. The person's own queries if omitted."""
    identity: str | None = None
    """Column that identifies a person in the directory and in the original, used only to decide which guess is
    correct. The attack itself never sees it."""
    terms: tuple[str, ...] = ()
    """Columns of the directory whose words are looked up. Default: all but ``identity``."""
    events: Annotated[int, Field(ge=1, le=1000)] = 6
    """Without a directory: number of queries of the person whose words the attacker knows."""
    queries: Annotated[int, Field(ge=1)] | None = None
    """Number of queries of each person that the attacker sees, drawn at random; all if omitted."""
    threshold: Annotated[float, Field(ge=0)] = 1.5
    """Minimum eccentricity of the best match: the gap to the second best in standard deviations of all scores."""

    @property
    def event_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def setting(self) -> str:
        return f"{self.queries} queries" if self.queries is not None else ""

    def known_events(self, original: pl.DataFrame, owner: Ints, people: Ints, rng: Rng) -> pl.DataFrame:
        """A list of words per person: of their rows in the directory, or of a few of their own queries."""
        who = pl.Series("who", people)
        if self.directory is None:
            order = rng.generator.permutation(len(owner))
            texts = pl.DataFrame({"who": owner[order], "text": original[self.item].gather(order).cast(pl.String)})
            texts = (
                texts.filter(pl.col("who").is_in(who.implode())).group_by("who", maintain_order=True).head(self.events)
            )
        else:
            rows = outside_rows(
                self.part_name(), self.directory, original, owner, identity=self.identity, columns=self.terms
            )
            texts = rows.select("who", pl.concat_str(pl.exclude("who"), separator=" ", ignore_nulls=True).alias("text"))
        words = texts.group_by("who").agg(
            words_of(pl.col("text")).explode().drop_nulls().unique().sort().alias(self.item)
        )
        return pl.DataFrame({"who": who}).join(words, on="who", how="left", maintain_order="left").select(
            pl.col(self.item).fill_null([])
        )  # fmt: skip

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        def seen(rows: pl.DataFrame) -> pl.DataFrame:
            if self.queries is None:
                return rows
            order = rng.child("seen").generator.permutation(rows.height)
            return rows[order].filter(pl.int_range(pl.len()).over("unit") < self.queries)

        return name_people(
            view, self.item, word_occurrences, threshold=self.threshold, task="directory linkage", progress=progress,
            seen=seen,
        )  # fmt: skip
