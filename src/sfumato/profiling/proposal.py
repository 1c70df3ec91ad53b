"""Proposed roles, kinds and hierarchies for the columns of a table, with reasons."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape

import polars as pl

from sfumato.data.missing import is_missing
from sfumato.data.numeric_types import integers_from_floats
from sfumato.data.read_write import read as read_table
from sfumato.data.table import ColumnLabels, Table
from sfumato.data.type_inference import infer
from sfumato.dataset import Kind, Role
from sfumato.dataset.data import ROWS_OF_AN_IDENTIFIER
from sfumato.dataset.number_formats import NumberFormat, number_format, read_numbers
from sfumato.profiling.derived import Determination, find_determinations
from sfumato.profiling.detectors import DETECTORS
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import HIPAA, Finding
from sfumato.profiling.groups import alike, same_role
from sfumato.profiling.hierarchy_proposal import propose_hierarchy
from sfumato.profiling.placeholders import Code, Placeholder, find_placeholders
from sfumato.profiling.singling_out import Combination, Singling, single_out, unique_share
from sfumato.profiling.totals import total_in
from sfumato.profiling.units import person_number, shared_by_rows_of_a_person
from sfumato.progress import AUTO, Progress


@dataclass(frozen=True, kw_only=True)
class ColumnProposal:
    """The proposed role, kind and hierarchy of one column, with the reason."""

    name: str
    kind: Kind
    finding: Finding
    hierarchy: Mapping[str, object] | None
    distinct: int
    missing: float
    """Share of rows without a value, or with a code that surely means "no answer"."""
    placeholders: tuple[Placeholder, ...] = ()
    """Codes that may mean "no answer"."""

    @property
    def missing_codes(self) -> tuple[Code, ...]:
        """Codes that the proposed recipe reads as missing."""
        return tuple(code for placeholder in self.placeholders if placeholder.sure for code in placeholder.codes)

    @property
    def role(self) -> Role:
        return self.finding.role

    @property
    def reason(self) -> str:
        """The reason in one line, with the HIPAA identifier class if there is one."""
        hipaa = self.finding.hipaa
        return self.finding.reason + (f" (HIPAA {hipaa}: {HIPAA[hipaa]})" if hipaa else "")

    def to_dict(self) -> dict[str, object]:
        """The proposal as plain data, as in the JSON document of ``sfumato init --json``."""
        return {
            "column": self.name,
            "role": self.role.value,
            "kind": self.kind.value,
            "hierarchy": dict(self.hierarchy) if self.hierarchy is not None else None,
            "detector": self.finding.detector,
            "reason": self.finding.reason,
            "hipaa": self.finding.hipaa,
            "confidence": self.finding.confidence,
            "distinct": self.distinct,
            "missing": self.missing,
            "missing_codes": [placeholder.to_dict() for placeholder in self.placeholders],
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class Proposal:
    """Roles, kinds and hierarchies to start from; review and change them before use."""

    rows: int
    """Rows that were examined."""
    whole: int
    """Rows of the whole table."""
    columns: tuple[ColumnProposal, ...]
    unit: str | None
    """The column that identifies a person, if people have several rows."""
    derived: tuple[Determination, ...]
    """Columns from which a quasi-identifier or an identifier can be computed."""
    register: Combination | None
    """The columns that external registers such as voter lists also contain, and the share of rows they single out."""
    quasi: Combination | None
    """All proposed quasi-identifiers together."""
    singling: Singling | None
    """The smallest combinations of columns that single people out; None if there is nothing to combine."""
    total: str | None = None
    """Why the last row is probably a total and no person; None if nothing says so."""

    def __repr__(self) -> str:
        if not self.columns:
            return "<Proposal of 0 columns>"
        names = max(len(column.name) for column in self.columns)
        roles = max(len(column.role.value) for column in self.columns)
        kinds = max(len(column.kind.value) for column in self.columns)
        lines = []
        for column in self.columns:
            hipaa = f" (HIPAA {column.finding.hipaa}: ...)" if column.finding.hipaa else ""
            line = f"{column.name:<{names}}  {column.role.value:<{roles}}  {column.kind.value:<{kinds}}"
            lines.append(f"{line}  {column.finding.reason}{hipaa}")
        lines += [f"{words} of the rows" for words in self._singled_out()]
        lines += self.warnings()
        return "\n".join(lines)

    def warnings(self) -> list[str]:
        """What has to be changed in the file itself."""
        if self.total is None:
            return []
        looks = f"The last row looks like a total and no person: {self.total}."
        return [f"{looks} Delete it in the file, or it is released as a person."]

    @property
    def repeated(self) -> str | None:
        """An identifier with the same value in several rows, where no column was found that identifies a person: a
        person has to say whose the rows are."""
        if self.unit is not None:
            return None
        known = ((column, self.rows - column.missing) for column in self.columns if column.role is Role.IDENTIFIER)
        found = (column.name for column, rows in known if rows >= ROWS_OF_AN_IDENTIFIER * max(column.distinct, 1))
        return next(found, None)

    def combinations(self) -> list[tuple[Combination, str]]:
        """Columns that single rows out together, each combination once, with why it is named."""
        named: list[tuple[Combination | None, str]] = [
            (self.register, "columns of external registers"),
            (self.quasi, "all proposed quasi-identifiers"),
        ]
        if self.singling is not None:
            named += [(found, "a minimal combination") for found in self.singling.minimal]
            if not self.singling.minimal and self.singling.others:
                best = max(self.singling.others, key=lambda found: found.unique)
                named.append((best, f"the best combination of {len(best.columns)} columns"))
        once: dict[frozenset[str], tuple[Combination, str]] = {}
        for found, why in named:
            if found is not None:
                once.setdefault(frozenset(found.columns), (found, why))
        return list(once.values())

    def _singled_out(self) -> list[str]:
        """The worst combinations in words: those that reach the threshold, or else the best below it."""
        if self.singling is None:
            return []
        below = sorted(self.singling.others, key=lambda combination: -combination.unique)
        worst = (self.singling.minimal or below)[:5]
        return [
            f"{' + '.join(c.columns)} {'singles' if len(c.columns) == 1 else 'single'} out {c.unique:.1%}"
            for c in worst
            if c.unique
        ]

    def to_frame(self) -> pl.DataFrame:
        """One row per column, as a Polars data frame."""
        rows = [
            {
                "column": column.name,
                "role": column.role.value,
                "kind": column.kind.value,
                "reason": column.reason,
                "confidence": column.finding.confidence,
                "distinct": column.distinct,
                "missing": column.missing,
            }
            for column in self.columns
        ]
        types = dict.fromkeys(("column", "role", "kind", "reason"), pl.String)
        return pl.DataFrame(
            rows, schema={**types, "confidence": pl.Float64, "distinct": pl.Int64, "missing": pl.Float64}
        )

    def _repr_html_(self) -> str:
        """A table of columns with roles and reasons, and the combinations that single people out."""
        head = "".join(f"<th>{name}</th>" for name in ("column", "role", "kind", "reason"))
        body = "".join(
            "<tr>"
            + "".join(f"<td>{escape(text)}</td>" for text in (c.name, c.role.value, c.kind.value, c.reason))
            + "</tr>"
            for c in self.columns
        )
        lines = "".join(f"<li>{escape(words)} of the rows</li>" for words in self._singled_out())
        lines += "".join(f"<li>{escape(words)}</li>" for words in self.warnings())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (
            f"<ul>{lines}</ul>" if lines else ""
        )

    def recipe(self, *, k: int | None = None, data: str | None = None, step: Mapping[str, object] | None = None) -> str:
        """The proposed recipe as YAML text with the reasons as comments.

        ``k`` is the parameter of k-anonymity; without it the model is left as a comment for the data owner to fill in.
        ``data`` is the file that the recipe names. ``step`` is the masking step, for example ``{"mondrian": {}}`` or
        the best of :func:`sfumato.studies.compare_methods`; generalization if left out.
        """
        from sfumato.profiling.recipe_text import to_yaml

        return to_yaml(self, data, k=k, step=step)

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Names of the columns proposed for a role."""
        return tuple(column.name for column in self.columns if column.role is role)

    def to_dict(self) -> dict[str, object]:
        """The proposal as plain data, as in the JSON document of ``sfumato init --json``."""
        return {
            "rows": self.whole,
            "looked_at": self.rows,
            "columns": [column.to_dict() for column in self.columns],
            "unit": self.unit,
            "derived": [found.to_dict() for found in self.derived],
            "register": self.register.to_dict() if self.register else None,
            "quasi": self.quasi.to_dict() if self.quasi else None,
            "singling": self.singling.to_dict() if self.singling else None,
            "total": self.total,
        }


def propose(data: object, *, whole: int | None = None, progress: Progress = AUTO, max_size: int = 4) -> Proposal:
    """Propose roles, kinds and hierarchies from the names and values of the columns, for review.

    ``data`` is a table, or anything that can be read as one: a path, a pandas, Polars or Arrow frame. Columns that no
    detector recognizes get the role ``undecided``, which ``protect`` refuses: decide them with :func:`sfumato.decide`.
    Combinations of up to ``max_size`` columns are searched for those that single people out. ``whole`` is the number of
    rows of the whole table if ``data`` is a part of it (:func:`sfumato.data.preview`); shares of unique rows are then
    those of the part, which are higher than in the whole table.

    >>> people = pl.DataFrame({"dob": ["1965-07-31", "1970-01-02"], "gender": ["f", "m"]})
    >>> propose(people)
    dob     quasi  date      the name says birth; 100% of the values are dates (HIPAA C: ...)
    gender  quasi  category  the name says sex
    dob singles out 100.0% of the rows
    gender singles out 100.0% of the rows
    """
    table = data if isinstance(data, Table) else read_table(data)
    with progress.task("Looking at the columns", len(table.columns)) as tick:
        columns, read = [], []
        for name in table.columns:
            labels = table.labels.get(name, ColumnLabels())
            placeholders = find_placeholders(
                table.column(name), declared=labels.missing, value_labels=labels.value_labels
            )
            # Not under the column's own name, which Polars might interpret as a pattern.
            values = _as_read(table.column(name).alias("value"), placeholders)
            values = integers_from_floats(values.to_frame()).to_series()
            facts = Facts(name=name, series=values, label=labels.label or "", value_labels=labels.value_labels)
            columns.append(_column(facts, placeholders))
            read.append(values.alias(name))
            tick(1)
    frame = pl.DataFrame(read)
    people = shared_by_rows_of_a_person(frame, {column.name: column.finding for column in columns})
    columns = _one_counts([replace(c, finding=people[c.name]) if c.name in people else c for c in columns])
    together = same_role({c.name: c.finding for c in columns}, alike({c.name: c.kind for c in columns}))
    columns = [replace(c, finding=together[c.name]) if c.name in together else c for c in columns]
    unit = person_number(frame, {column.name: column.finding for column in columns})
    derived = _derived(frame, columns)
    columns = [_with_derived(column, derived, columns) for column in columns]
    known = [c.name for c in columns if c.finding.register and c.role is Role.QUASI]
    quasi = [c.name for c in columns if c.role is Role.QUASI]
    # Identifiers single out by definition; weights and household numbers belong to the survey, not to the person.
    combined = [c.name for c in columns if c.role in (Role.QUASI, Role.SENSITIVE, Role.UNDECIDED) and c.missing < 1]
    return Proposal(
        rows=table.rows,
        whole=whole if whole is not None else table.rows,
        columns=tuple(columns),
        unit=unit,
        derived=derived,
        register=_together(frame, known) if len(known) > 1 else None,
        quasi=_together(frame, quasi),
        singling=single_out(_some(frame, combined), max_size=max_size, progress=progress)
        if combined and table.rows > 1
        else None,
        total=total_in(table.frame) if table.columns else None,
    )


def _one_counts(columns: list[ColumnProposal]) -> list[ColumnProposal]:
    """Only the first weight or household number is used; the others are undecided."""
    columns_out = []
    for column in columns:
        first = next((c.name for c in columns if c.role is column.role), column.name)
        if column.role in (Role.WEIGHT, Role.HOUSEHOLD) and first != column.name:
            reason = f"{column.finding.reason}; only one can be used, and `{first}` comes first"
            column = replace(column, finding=replace(column.finding, reason=reason, role=Role.UNDECIDED))
        columns_out.append(column)
    return columns_out


def _derived(frame: pl.DataFrame, columns: list[ColumnProposal]) -> tuple[Determination, ...]:
    """Other columns from which a proposed quasi-identifier or identifier follows.

    An identifier counts only if order or arithmetic gives it: a pseudonym of the same people is no function of them.
    """
    protected = {column.name: column.role for column in columns if column.role in (Role.QUASI, Role.IDENTIFIER)}
    others = [column.name for column in columns if column.name not in protected]
    if not protected or not others:
        return ()
    found = find_determinations(_some(frame, others), _some(frame, list(protected)))
    return tuple(d for d in found if protected[d.target] is not Role.IDENTIFIER or d.computable)


def _with_derived(
    column: ColumnProposal, derived: tuple[Determination, ...], columns: list[ColumnProposal]
) -> ColumnProposal:
    """The column with the reason that others follow from it; one that suffices alone gets the role of the other."""
    concerned = [found for found in derived if column.name in found.columns]
    if not concerned:
        return column
    roles = {other.name: other.role for other in columns}
    alone = [roles[found.target] for found in concerned if len(found.columns) == 1]
    role = column.role if not alone else Role.IDENTIFIER if Role.IDENTIFIER in alone else Role.QUASI
    text = "; ".join(map(str, concerned[:3])) + (f" and {len(concerned) - 3} more" if len(concerned) > 3 else "")
    reason = f"{text}: mask them together, or drop it"
    if column.finding.confidence > 0:
        reason = f"{column.finding.reason}; {reason}"
    return replace(column, finding=replace(column.finding, role=role, reason=reason))


def _as_read(values: pl.Series, placeholders: tuple[Placeholder, ...]) -> pl.Series:
    """The column with sure placeholder codes set to missing, and then its type inferred again.

    Text with decimal commas or thousands separators becomes numbers, as ``kind: number`` would read it.
    """
    codes = tuple(code for placeholder in placeholders if placeholder.sure for code in placeholder.codes)
    blanked = values.set(is_missing(values, codes), None) if codes else values
    if blanked.dtype != pl.String:
        return blanked
    known = infer(blanked.to_frame()).to_series() if codes else blanked
    return read_numbers(known) if known.dtype == pl.String and _are_amounts(known) else known


def _are_amounts(texts: pl.Series) -> bool:
    """Whether texts are numbers with a comma or thousands separators; a leading zero or plus sign means a code."""
    form = number_format(texts)
    if form is None or form == NumberFormat(decimal="."):
        return False
    code = texts.str.contains(r"^\s*(?:\+|-?0[0-9])").any()
    return not code and bool(texts.str.contains(re.escape(form.decimal)).any())


def _together(frame: pl.DataFrame, names: list[str]) -> Combination | None:
    if not names or frame.height == 0:
        return None
    return Combination(columns=tuple(names), unique=unique_share(_some(frame, names)))


def _some(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """These columns. ``select`` would interpret a column name such as ``*`` as a pattern."""
    return pl.DataFrame([frame.get_column(name) for name in names])


def _column(facts: Facts, placeholders: tuple[Placeholder, ...]) -> ColumnProposal:
    finding = _most_confident(facts)
    kind = finding.kind or facts.kind
    hierarchy = finding.hierarchy
    if hierarchy is None and (finding.bands or finding.role in (Role.QUASI, Role.UNDECIDED)):
        hierarchy = propose_hierarchy(facts, kind)
    rows = max(len(facts.series), 1)
    return ColumnProposal(
        name=facts.name,
        kind=kind,
        finding=finding,
        hierarchy=hierarchy,
        distinct=facts.distinct,
        missing=1 - facts.present / rows,
        placeholders=placeholders,
    )


def _most_confident(facts: Facts) -> Finding:
    if facts.present == 0:
        reason = "no row has a value; choose a role"
        return Finding(detector="nothing", role=Role.UNDECIDED, reason=reason, confidence=0.0, bands=True)
    if facts.series.dtype == pl.Binary:
        reason = "binary data (a picture, a recording, a file), which cannot be checked"
        return Finding(detector="bytes", role=Role.IDENTIFIER, reason=reason, confidence=1.0, hipaa="R")
    findings = [finding for detector in DETECTORS if (finding := detector(facts)) is not None]
    if not findings:
        reason = "not recognized; choose a role"
        return Finding(detector="nothing", role=Role.UNDECIDED, reason=reason, confidence=0.0, bands=True)
    return max(findings, key=lambda finding: finding.confidence)
