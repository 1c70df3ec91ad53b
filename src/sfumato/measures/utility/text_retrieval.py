"""Utility of released texts for retrieval."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.normalize import canonical
from sfumato.documents.text_vectors import text_vectors
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class TextRetrieval(Measure):
    """The share of the most similar texts that a search in the release finds, compared with the same in the original.

    Some texts of the original are the questions. The ``top`` most similar other texts of the original are relevant
    (cosine of TF-IDF vectors of words); the value is the share of them among the ``top`` results in the release. The
    interval is for the mean over the questions.
    """

    about: ClassVar[About] = About.UTILITY
    better = "high"
    main: ClassVar[str | None] = "column"
    label: ClassVar[str] = "similar texts found"
    percentage: ClassVar[bool] = True
    examples = ({"column": "zip"}, {"column": "diagnosis", "top": 3})
    reference: ClassVar[str] = (
        "Manning, C., Raghavan, P., Schütze, H. (2008). Introduction to information retrieval. ISBN 978-0-521-86571-5"
    )

    column: str
    """Column with the texts."""
    top: Annotated[int, Field(ge=1, le=1000)] = 10
    """Number of results."""
    questions: Annotated[int, Field(ge=10)] = 300
    """Number of texts that are asked with, at most."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        pair.release.table.require([self.column])
        if pair.lineage is None:
            raise NotApplicable(
                "Retrieval needs the row correspondence between original and release.",
                fix="Pass the row map (`lineage`) that was written with the release.",
            )
        rows = pair.lineage.rows
        kept = np.flatnonzero(rows >= 0)
        original, released = canonical(pair.original.table.column(self.column)), canonical(pair.masked[self.column])
        filled = np.flatnonzero((original.fill_null("").str.len_chars() > 0).to_numpy())
        if len(filled) < 2 or not len(kept):
            raise NotApplicable(f"The column `{self.column}` has fewer than two texts.")
        asked = np.sort(rng.generator.choice(filled, min(self.questions, len(filled)), replace=False))
        question = original.gather(asked)
        relevant = self._results(question, original, np.arange(len(original)), asked)
        found = self._results(question, released.gather(kept), rows[kept], asked)
        shares = np.array([
            len(np.intersect1d(one, other)) / len(one) for one, other in zip(relevant, found, strict=True) if len(one)
        ])  # fmt: skip
        if not len(shares):
            raise NotApplicable(f"No two texts of `{self.column}` share a word.")
        mean, error = float(shares.mean()), 1.96 * float(shares.std()) / np.sqrt(len(shares))
        return MeasureResult(
            measure=self.part_name(),
            value=mean,
            low=max(0.0, mean - error),
            high=min(1.0, mean + error),
            detail={"questions": len(shares), "top": self.top},
        )

    def _results(
        self, question: object, texts: object, number: npt.NDArray[np.int64], asked: npt.NDArray[np.int64]
    ) -> list[npt.NDArray[np.int64]]:
        """For each question the numbers of the most similar texts without itself; equal ones in order of number."""
        asks, known = text_vectors(question, texts)  # type: ignore[arg-type]
        order = np.argsort(number, kind="stable")
        numbers, known = number[order], known[order]
        results = []
        for start in range(0, len(asked), 100):
            similarity = (asks[start : start + 100] @ known.T).toarray()
            similarity[numbers == asked[start : start + 100][:, None]] = 0.0
            ranked = np.argsort(-similarity, axis=1, kind="stable")[:, : self.top]
            results += [numbers[best[similarity[line, best] > 0]] for line, best in enumerate(ranked)]
        return results
