"""Record linkage of search logs with a directory of people (the AOL attack)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.normalize import canonical
from sfumato.attacks.record_linkage.sparse_linkage.scores import Events, Scratch, find
from sfumato.data import read
from sfumato.data.row_codes import first_rows, value_codes
from sfumato.deadline import batches
from sfumato.errors import BadParameter
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["DirectoryLinkage"]

Ints = npt.NDArray[np.int64]
_WORDS = r"[\p{L}\p{N}]+"


class DirectoryLinkage(UnitLinking):
    """An attacker with a directory of people looks for the pseudonym whose searches contain a person's name and town.

    People search for themselves, their relatives and what is near them. Every word that the directory has about a
    person is looked up in all queries of the log; rare words count more. The best match is named only if its score
    exceeds the second best by ``threshold`` standard deviations of all scores. A single query is seldom enough:
    ``queries`` limits how many of each person the attacker sees, which shows how identification grows with the log.
    Without a directory, the attacker knows the words of a few of the person's own queries, the worst case.
    """

    examples: ClassVar = ({"item": "film", "events": 6},)
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
            texts = self._entries(original, owner)
        words = texts.group_by("who").agg(
            _words(pl.col("text")).explode().drop_nulls().unique().sort().alias(self.item)
        )
        return pl.DataFrame({"who": who}).join(words, on="who", how="left", maintain_order="left").select(
            pl.col(self.item).fill_null([])
        )  # fmt: skip

    def _entries(self, original: pl.DataFrame, owner: Ints) -> pl.DataFrame:
        """The texts of the directory about each person, by the number of the person."""
        assert self.directory is not None
        table = read(self.directory)
        identity = self.identity
        if identity is None:
            raise BadParameter(
                "directory-linkage: `identity` is required with a directory.",
                fix="Name the column that identifies a person in both files; without it no guess can be checked.",
            )
        terms = self.terms or tuple(name for name in table.columns if name != identity)
        table.require([identity, *terms])
        if identity not in original.columns:
            raise BadParameter(
                f"directory-linkage: the original has no column `{identity}`.",
                fix="Name the column that identifies a person in both the directory and the original.",
            )
        numbers = pl.DataFrame({"id": original[identity].cast(pl.String), "who": owner}).unique()
        texts = [pl.col(name).cast(pl.String) for name in terms]
        entries = table.frame.select(
            pl.col(identity).cast(pl.String).alias("id"),
            pl.concat_str(texts, separator=" ", ignore_nulls=True).alias("text"),
        )
        return entries.join(numbers, on="id").select("who", "text")

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        table = view.release.table.frame
        unit, units = value_codes(table[view.secret])
        first = first_rows(unit, len(units)).astype(np.int64)
        wanted = view.targets[self.item].explode().drop_nulls().unique().sort()
        words = {word: code for code, word in enumerate(wanted.to_list())}
        person, word = self._occurrences(unit, canonical(table[self.item]), wanted, rng)
        none = np.zeros(len(person), dtype=np.uint8)
        events = Events.of(
            person=person.astype(np.int32),
            item=word.astype(np.int32),
            rating=none,
            day=none.astype(np.int16),
            people=len(units),
            items=max(1, len(words)),
        )
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        scratch, done = Scratch(events.people), 0
        targets = view.targets[self.item].to_list()
        for part, target in zip(batches(progress, "directory linkage", len(targets)), targets, strict=False):
            known = np.array([words[one] for one in target], dtype=np.int32)
            blank = np.full(len(known), np.nan)
            best = find(events, known, blank, blank, rating_scale=1.0, day_scale=1.0, scratch=scratch)
            if best.person >= 0 and best.eccentricity >= self.threshold:
                row[part] = first[best.person]
                confidence[part] = min(1.0, best.eccentricity / (best.eccentricity + 1.0))
            done = part.stop
        detail = {"people": len(units), "words": len(words)}
        return Guesses.of_rows(row, confidence, detail, tried=done)

    def _occurrences(self, unit: Ints, texts: pl.Series, wanted: pl.Series, rng: Rng) -> tuple[Ints, Ints]:
        """Each person with each wanted word that their queries contain."""
        query, distinct = value_codes(texts)
        events = pl.DataFrame({"unit": unit, "query": query}).filter(texts.is_not_null())
        if self.queries is not None:
            order = rng.child("seen").generator.permutation(events.height)
            events = events[order].filter(pl.int_range(pl.len()).over("unit") < self.queries)
        spoken = pl.DataFrame({"query": np.arange(len(distinct)), "word": distinct}).select(
            "query", _words(pl.col("word"))
        )
        codes = pl.DataFrame({"word": wanted, "code": np.arange(len(wanted))})
        spoken = spoken.explode("word").join(codes, on="word").select("query", "code")
        said = np.zeros(len(distinct), dtype=np.bool_)
        said[spoken["query"].to_numpy()] = True
        events = events.filter(pl.Series(said[events["query"].to_numpy()])).unique()
        pairs = events.join(spoken, on="query").select("unit", "code").unique().sort("unit", "code")
        return pairs["unit"].to_numpy().astype(np.int64), pairs["code"].to_numpy().astype(np.int64)


def _words(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.extract_all(_WORDS).list.unique()
