"""De-identification of free text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.documents.tagger import tag
from sfumato.documents.text_findings import TextFinding, folded_text, known_names, merged
from sfumato.documents.text_taxonomy import TextTaxonomy, age_band
from sfumato.errors import WrongKind
from sfumato.masking.base import Context, Step
from sfumato.params import InputFile
from sfumato.release import Change, State, Verdict

_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%B %d %Y")


class DeidentifyText(Step):
    """Replace names, dates, places, numbers and contacts in free text.

    The same person gets the same pseudonym in all their texts, and a family name that stands alone that of the full
    name. Dates are shifted by the same number of days for all texts of a person, so that intervals are preserved; dates
    that cannot be read exactly become ``[DATE]``. Places, numbers and contacts become ``[PLACE]``, ``[ID]``,
    ``[CONTACT]``. Names in identifier columns of the same row are looked up too, in any spelling: in capitals, without
    accents, joined. Terms of a ``taxonomy`` (towns, professions, diagnoses) become their label at ``level``, and ages
    become bands of ``ages`` years.

    Rules miss some identifiers, and what is left of a text (rare diseases, professions, family events) can identify a
    person without any of them. The verdict on a text is therefore ``not checked`` unless a person has read the texts
    and signs with ``signed_by``. Attack the outcome with ``nearest-documents``, ``rare-terms`` and ``profile-linkage``.
    """

    report_phrase = "names, dates, places, numbers and contacts replaced"
    simulable = False
    stronger = {"days": "more", "ages": "more", "level": "more"}
    examples = ({"columns": ["diagnosis"], "days": 30}, {"columns": ["diagnosis"], "days": 9, "ages": 10})
    reference = (
        "Neamatullah et al.: Automated de-identification of free-text medical records (2008), "
        "doi:10.1186/1472-6947-8-32"
    )
    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """Columns with texts."""
    days: Annotated[int, Field(ge=1, le=100_000)]
    """Largest shift of dates in days, in either direction."""
    ages: Annotated[int, Field(ge=2, le=90)] | None = None
    """Width of the bands of ages in years. Ages from 90 on are one band. If omitted, ages stay as they are."""
    taxonomy: InputFile | None = None
    """File with a term and its labels on each line, from fine to coarse: ``Springfield;the north;*``."""
    level: Annotated[int, Field(ge=1, le=20)] = 1
    """Level of the taxonomy that terms are generalized to."""
    taggers: Annotated[tuple[str, ...], Field(min_length=1)] = ("rules",)
    """What finds identifiers; all findings count. Other packages may register a tagger, such as a statistical model."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``, else every row is a person."""
    signed_by: str | None = None
    """Who has read the released texts and answers for them. Published with the release."""

    def apply(self, data: Data, context: Context) -> Change:
        unit = self.person or data.schema.unit
        data.table.require([*self.columns, *([] if unit is None else [unit])])
        frame = data.table.frame
        for name in self.columns:
            if frame.schema[name] != pl.String:
                raise WrongKind(f"deidentify-text: column `{name}` holds no texts.", column=name)
        whose = np.arange(data.rows) if unit is None else frame[unit].rank("dense").fill_null(0).to_numpy()
        known = [frame[name].cast(pl.String).fill_null("").to_list() for name in data.identifiers if name != unit]
        taxonomy = TextTaxonomy.read(self.taxonomy) if self.taxonomy is not None else None
        counts: Counter[str] = Counter()
        found: dict[str, list[list[TextFinding]]] = {}
        for name in self.columns:
            texts = frame[name].fill_null("").to_list()
            tagged = tag(self.taggers, texts)
            found[name] = [
                self._found(text, tagged[row], [names[row] for names in known], taxonomy)
                for row, text in enumerate(texts)
            ]
            counts.update(one.kind for row in found[name] for one in row)
        masked = []
        if counts:
            shifts, numbers = self._secrets(whose, found, context)
            for name in self.columns:
                pairs = zip(frame[name].to_list(), found[name], strict=True)
                texts = [
                    None if text is None else self._replaced(text, ones, int(who), shifts, numbers, taxonomy)
                    for (text, ones), who in zip(pairs, whose, strict=True)
                ]
                masked.append(pl.Series(name, texts, dtype=pl.String))
        return Change(
            table=data.table.with_frame(frame.with_columns(masked)),
            public={"columns": list(self.columns)},
            private={"found": dict(sorted(counts.items()))},
        )

    def _found(
        self, text: str, tagged: list[TextFinding], names: list[str], taxonomy: TextTaxonomy | None
    ) -> list[TextFinding]:
        """What is replaced in a text, in order and without overlaps."""
        terms = taxonomy.find(text) if taxonomy is not None else ()
        kept = (one for one in tagged if one.kind != "age" or self.ages is not None)
        return merged(text, [*kept, *known_names(text, names), *terms])

    def _secrets(
        self, whose: Any, found: Mapping[str, list[list[TextFinding]]], context: Context
    ) -> tuple[dict[int, int], dict[tuple[int, str], int]]:
        """The shift of each person in days, and a random number for each name in the texts of a person."""
        draw = context.rng.child("text").generator
        people = [int(who) for who in np.unique(whose)]
        shift = draw.integers(1, self.days + 1, len(people)) * draw.choice([-1, 1], len(people))
        names = sorted(
            {(int(who), _family(one)) for rows in found.values() for who, row in zip(whose, rows, strict=True)
             for one in row if one.kind == "name"}
        )  # fmt: skip
        numbers = dict(zip(names, map(int, draw.permutation(len(names)) + 1), strict=True))
        # a given name alone means the person whose full name stands in the same texts
        for rows in found.values():
            for who, row in zip(whose, rows, strict=True):
                for one in row:
                    first, *rest = _words(one)
                    if one.kind == "name" and rest:
                        numbers[int(who), first] = numbers[int(who), rest[-1]]
        return dict(zip(people, map(int, shift), strict=True)), numbers

    def _replaced(
        self,
        text: str,
        findings: list[TextFinding],
        who: int,
        shifts: dict[int, int],
        numbers: dict[tuple[int, str], int],
        taxonomy: TextTaxonomy | None,
    ) -> str:
        parts, at = [], 0
        for one in findings:
            parts.append(text[at : one.start])
            match one.kind:
                case "name":
                    parts.append(f"[PERSON {numbers[who, _family(one)]}]")
                case "date":
                    parts.append(_shifted(one.text, shifts[who]))
                case "age":
                    assert self.ages is not None
                    parts.append(age_band(int(one.text), self.ages) if one.text.isdecimal() else "[AGE]")
                case "term":
                    assert taxonomy is not None
                    parts.append(taxonomy.label(one.text, self.level))
                case "place" | "id" | "contact":
                    parts.append(f"[{one.kind.upper()}]")
            at = one.end
        return "".join([*parts, text[at:]])

    @classmethod
    def verify_release(cls, published: Mapping[str, Any], release: pl.DataFrame) -> tuple[Verdict, ...]:
        signed = (published.get("parameters") or {}).get("signed_by")
        if signed:
            return (Verdict(model="text", state=State.HOLDS, reason=f"Read and signed by {signed}."),)
        reason = "No rule finds every identifier in free text; a person must read the texts and sign (`signed_by`)."
        return (Verdict(model="text", state=State.NOT_CHECKED, reason=reason),)


def _family(finding: TextFinding) -> str:
    return _words(finding)[-1]


def _words(finding: TextFinding) -> list[str]:
    """The words of a name in one spelling: the same person gets the same pseudonym, with accents or without."""
    return re.sub("[-']", "", folded_text(finding.text)[0]).split() or [finding.text]


def _shifted(text: str, days: int) -> str:
    """The date moved by so many days, in the same format; ``[DATE]`` if it is ambiguous or incomplete."""
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b", "", text)
    for form in _FORMATS:
        try:
            moved: date = datetime.strptime(plain, form).date() + timedelta(days=days)
        except (ValueError, OverflowError):
            continue
        return moved.strftime(form)
    return "[DATE]"
