"""Re-identification of texts by quasi-identifiers that they mention."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.normalize import canonical, folded
from sfumato.attacks.record_linkage._outside_texts import outside_rows
from sfumato.attacks.record_linkage._term_lookup import name_people
from sfumato.documents.text_taxonomy import TextTaxonomy
from sfumato.errors import BadParameter
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Ints = npt.NDArray[np.int64]
_NUMBER = r"^-?\d+$"
_BANDS = r"\d+(?:\s?(?:-|–|to)\s?\d+)?"


class ProfileLinkage(UnitLinking):
    """An attacker with a profile of a person (age, profession, town, illness) looks for the texts that mention them.

    Values of the profile are looked up in the texts as whole words; a number also fits a band that contains it, such
    as ``50-59``. With a ``taxonomy`` a value also fits its generalizations. Rare values count more. The best match is
    named only if its score exceeds the second best by ``threshold`` standard deviations of all scores. Without a file
    of profiles, the attacker knows the columns of the original itself, the worst case.
    """

    examples = ({"item": "film", "columns": ["film"]},)
    reference: ClassVar[str] = (
        "Lison, P. et al. (2021). Anonymisation models for text data: state of the art, challenges and future "
        "directions. doi:10.18653/v1/2021.acl-long.323"
    )

    item: str
    """Column with the texts."""
    profiles: InputFile | None = None
    """File with one row or more per person: a social network, a register. The original itself if omitted."""
    identity: str | None = None
    """Column that identifies a person in the file and in the original, used only to decide which guess is correct.
    The attack itself never sees it."""
    columns: tuple[str, ...] = ()
    """Columns of the profile that the attacker knows. Default: all columns of the file but ``identity``."""
    taxonomy: InputFile | None = None
    """File with a value and its generalizations on each line, if the release generalizes values in texts."""
    threshold: Annotated[float, Field(ge=0)] = 0.5
    """Minimum eccentricity of the best match: the gap to the second best in standard deviations of all scores."""

    @property
    def event_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def setting(self) -> str:
        return ", ".join(self.columns)

    def known_events(self, original: pl.DataFrame, owner: Ints, people: Ints, rng: Rng) -> pl.DataFrame:
        if self.profiles is not None:
            rows = outside_rows(
                self.part_name(), self.profiles, original, owner, identity=self.identity, columns=self.columns
            )
        elif self.columns:
            rows = pl.DataFrame({"who": owner, **{name: canonical(original[name]) for name in self.columns}})
        else:
            raise BadParameter(
                "profile-linkage: nothing is said about what the attacker knows.",
                fix="Name a file of `profiles`, or `columns` of the original.",
            )
        mine = rows.filter(pl.col("who").is_in(pl.Series(people).implode()))
        cells = mine.unpivot(index="who", value_name="value").select("who", "value").drop_nulls().unique()
        cells = cells.with_columns(folded(cells["value"])).filter(pl.col("value") != "")
        if self.taxonomy is not None:
            cells = pl.concat([cells, _generalized(cells, TextTaxonomy.read(self.taxonomy))]).unique()
        known = cells.sort("who", "value").group_by("who", maintain_order=True).agg(pl.col("value").alias(self.item))
        found = pl.DataFrame({"who": people}).join(known, on="who", how="left", maintain_order="left")
        return found.select(pl.col(self.item).fill_null([]))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        return name_people(
            view, self.item, _mentions, threshold=self.threshold, task="profile linkage", progress=progress
        )


def _generalized(cells: pl.DataFrame, taxonomy: TextTaxonomy) -> pl.DataFrame:
    """The generalizations of the values, all levels."""
    pairs = [(value, label) for value in cells["value"].unique() for label in taxonomy.labels(value)]
    table = pl.DataFrame(pairs, schema={"value": pl.String, "label": pl.String}, orient="row")
    found = cells.join(table.with_columns(folded(table["label"])), on="value")
    return found.select("who", pl.col("label").alias("value"))


def _mentions(texts: pl.Series, wanted: pl.Series) -> pl.DataFrame:
    """Each text with each wanted value that it mentions: phrases as whole words, numbers also inside a band."""
    codes = pl.DataFrame({"term": wanted, "code": np.arange(len(wanted))}, schema_overrides={"term": pl.String})
    number = pl.col("term").str.contains(_NUMBER)
    phrases = codes.filter(~number).with_columns(pl.concat_str(pl.lit(" "), "term", pl.lit(" ")))
    frame = pl.DataFrame({"text": np.arange(len(texts)), "words": folded(texts.fill_null(""))})
    padded = pl.concat_str(pl.lit(" "), "words", pl.lit(" "))
    said = frame.select("text", padded.str.extract_many(phrases["term"].implode(), overlapping=True).alias("term"))
    found = [said.explode("term").join(phrases, on="term").select("text", "code")]
    numbers = codes.filter(number).with_columns(pl.col("term").cast(pl.Int64, strict=False)).drop_nulls()
    if numbers.height:
        raw = pl.DataFrame({"text": np.arange(len(texts)), "band": texts.str.extract_all(_BANDS)}).explode("band")
        ends = pl.col("band").str.extract_all(r"\d+").list.eval(pl.element().cast(pl.Int64, strict=False))
        bands = raw.drop_nulls().select("text", ends.list.first().alias("low"), ends.list.last().alias("high"))
        distinct = bands.drop("text").unique()
        inside = distinct.join(numbers, how="cross").filter(pl.col("term").is_between("low", "high"))
        found.append(bands.join(inside, on=["low", "high"]).select("text", "code"))
    return pl.concat(found)
