"""Re-identification of patients and authors by the similarity of texts (nearest documents, authorship attribution)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Guesses, UnitLinking, View
from sfumato.attacks.normalize import canonical
from sfumato.attacks.record_linkage._outside_texts import outside_rows
from sfumato.data.row_codes import first_rows, value_codes
from sfumato.deadline import batches
from sfumato.documents.text_vectors import TextFeatures, nearest, style_vectors, text_vectors
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

Ints = npt.NDArray[np.int64]


class NearestDocuments(UnitLinking):
    """An attacker with texts by or about a person looks for the pseudonym whose released texts are most similar.

    All texts of a pseudonym are one document. Documents are compared by their ``words`` (TF-IDF), which finds people by
    what the texts say, or by their n-grams of ``characters``, which finds authors by their style: endings, spacing,
    punctuation. The person with the most similar document (cosine) is named. Without outside texts, the attacker knows
    ``events`` of the person's own texts in the original, the worst case.
    """

    pairwise: ClassVar[bool] = True
    examples = ({"item": "film"}, {"item": "film", "features": "characters"})
    reference: ClassVar[str] = (
        "Narayanan, A. et al. (2012). On the feasibility of internet-scale author identification. "
        "doi:10.1109/SP.2012.46"
    )

    item: str
    """Column with the texts."""
    features: TextFeatures = "words"
    """Compare texts by their words, or by their n-grams of characters (writing style)."""
    texts: InputFile | None = None
    """File with texts by or about people: letters, posts. The person's own texts in the original if omitted."""
    identity: str | None = None
    """Column that identifies a person in that file and in the original, used only to decide which guess is correct.
    The attack itself never sees it."""
    columns: tuple[str, ...] = ()
    """Columns of the file with texts. Default: all but ``identity``."""
    events: Annotated[int, Field(ge=1, le=1000)] = 100
    """Without outside texts: number of texts of the person that the attacker knows, at most."""

    @property
    def event_columns(self) -> tuple[str, ...]:
        return (self.item,)

    @property
    def setting(self) -> str:
        return "writing style" if self.features == "characters" else ""

    def known_events(self, original: pl.DataFrame, owner: Ints, people: Ints, rng: Rng) -> pl.DataFrame:
        who = pl.Series("who", people)
        if self.texts is None:
            order = rng.generator.permutation(len(owner))
            rows = pl.DataFrame({"who": owner[order], "text": canonical(original[self.item]).gather(order)})
            rows = (
                rows.filter(pl.col("who").is_in(who.implode())).group_by("who", maintain_order=True).head(self.events)
            )
        else:
            rows = outside_rows(
                self.part_name(), self.texts, original, owner, identity=self.identity, columns=self.columns
            )
            rows = rows.select("who", pl.concat_str(pl.exclude("who"), separator=" ", ignore_nulls=True).alias("text"))
        known = rows.drop_nulls().group_by("who", maintain_order=True).agg(pl.col("text").alias(self.item))
        found = pl.DataFrame({"who": who}).join(known, on="who", how="left", maintain_order="left")
        return found.select(pl.col(self.item).fill_null([]))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        table = view.release.table.frame
        unit, units = value_codes(table[view.secret])
        rows = pl.DataFrame({"unit": unit, "text": canonical(table[self.item]).fill_null("")})
        documents = rows.group_by("unit").agg(pl.col("text").str.join(" ")).sort("unit")["text"]
        # people with equally similar documents are chosen among at random
        order = rng.generator.permutation(len(documents))
        vectors = text_vectors if self.features == "words" else style_vectors
        asked, known = vectors(view.targets[self.item].list.join(" "), documents.gather(order))
        first = first_rows(unit, len(units)).astype(np.int64)[order]
        row, confidence = np.full(view.targets.height, -1, dtype=np.int64), np.zeros(view.targets.height)
        done, size = 0, max(1, min(100, 20_000_000 // len(documents)))
        for part in batches(progress, "nearest documents", view.targets.height, size):
            best, similarity, second = nearest(asked[part], known)
            row[part] = np.where(best >= 0, first[np.maximum(best, 0)], -1)
            confidence[part] = np.where(similarity > 0, (similarity - second) / np.maximum(similarity, 1e-12), 0.0)
            done = part.stop
        return Guesses.of_rows(row, confidence.clip(0, 1), {"people": len(units), "terms": known.shape[1]}, tried=done)
