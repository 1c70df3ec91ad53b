"""Figures of a report: chart, caption, text alternative and the table of numbers of each picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from sfumato.drawing import BarChart, BarRow, Cell, Cells, Chart, ColumnChart, ColumnRow, Dot, Intervals, Lines, Place
from sfumato.evaluation.formatting import interval_ends, number, percent
from sfumato.measures import Picture, measure_of
from sfumato.reports.report_data import Bar, ColumnPicture, ReportData
from sfumato.reports.text import measure_label, pairings

WIDE, NARROW = 780, 360
MOST = 20
"""The largest number of bars in a picture; the table below it has all."""
SIZES = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None))
"""Ranges of class sizes, as in the measure ``class-sizes``: first and last."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture with its text alternative and its numbers."""

    name: str
    title: str
    alternative: str
    """The picture in words."""
    chart: Chart
    width: int = 400
    narrow: int | None = None
    """The width on a narrow screen, if it is drawn anew for it."""
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


def drawings(figure: Figure) -> tuple[str, ...]:
    """The picture as inline SVG; a second one if it is drawn anew for narrow screens."""
    label, ident = figure.alternative, f"picture-{figure.name}"
    if figure.narrow is None:
        return (figure.chart.draw(figure.width).svg(ident=ident, label=label),)
    wide, narrow = (figure.chart.draw(width) for width in (figure.width, figure.narrow))
    ends = narrow.svg(ident=f"{ident}-narrow", label=label, kind="narrow")
    return wide.svg(ident=ident, label=label, kind="wide"), ends


def risk_figure(
    attacks: Sequence[Mapping[str, object]],
    *,
    before: Sequence[Mapping[str, object]] = (),
    limits: Sequence[Mapping[str, object]] = (),
    counts: bool = True,
) -> Figure | None:
    """Risk of each attack before and after, with interval, baseline and limit; ``counts`` shows numbers of targets."""
    drawn: list[Dot] = []
    rows: list[tuple[str, ...]] = []
    for pair in pairings(attacks, before):
        for when, attack in (("before", pair.before), ("after", pair.after)):
            if attack is None:
                continue
            value = attack.get("risk")
            low, high = (attack.get(key) if attack.get(key) is not None else value for key in ("low", "high"))
            drawn.append(
                Dot(
                    label=pair.label,
                    when=when,
                    risk=value,
                    low=low,
                    high=high,
                    words=percent(value),
                    baseline=attack.get("baseline"),
                    limit=pair.limit_position(limits) if when == "after" else None,
                    reference=_reference(attack) if value is not None else None,
                )
            )
            ends = interval_ends(attack.get("low"), attack.get("high")) if value is not None else "–"
            shown = percent(value) if value is not None else attack.get("reason") or "not applicable"
            tried = attack.get("tried")
            rows.append(
                (pair.label, when, shown, ends, percent(attack.get("baseline")), percent(attack.get("control")))
                + ((number(tried),) if counts else ())
            )
    if not any(row.risk is not None for row in drawn):
        return None
    words = "; ".join(f"{row.label}, {row.when} protection: {row.words}" for row in drawn)
    caption = "Each dot is the share of targets for whom an attack succeeds; the band is its interval."
    caption += " The short grey tick is the baseline, which needs no release."
    if any(row.reference is not None for row in drawn):
        caption += " The line from the baseline or control to the dot is what the release adds."
    if any(row.limit is not None for row in drawn):
        caption += " The long thin line is the limit: it is met if the whole band lies left of it"
        beyond = any(limit.get("limit") != "risk" for limit in limits)
        caption += "; limits other than on identity count from the reference rate on." if beyond else "."
    return Figure(
        name="risk",
        title="Risk of each attack",
        alternative=f"Share of targets for whom each attack succeeds. {words}.",
        chart=Intervals(rows=tuple(drawn)),
        width=WIDE,
        narrow=NARROW,
        head=("Attack", "Protection", "Risk", "Interval", "Baseline", "Control") + (("Targets",) if counts else ()),
        rows=tuple(rows),
        caption=caption,
    )


def _reference(attack: Mapping[str, Any]) -> float | None:
    """The rate without the person's record; None for identity, where every success counts."""
    if attack.get("discloses") == "identity":
        return None
    rates = [attack.get(key) for key in ("reference", "baseline")]
    return next((rate for rate in rates if rate is not None), None)


def class_size_figure(report: ReportData) -> Figure | None:
    """Sizes of equivalence classes, before and after."""
    measure = _drawn_as(report, Picture.CLASS_SIZES)
    detail = measure.get("detail", {}) if measure else {}
    sides = {
        when: _shares(detail[key])
        for when, key in (("before", "histogram_before"), ("after", "histogram"))
        if detail.get(key)
    }
    if not sides:
        return None
    labels = [_size_label(first, last) for first, last in SIZES]
    drawn = tuple(
        ColumnRow(label=label, when=when, value=shares[i], words=percent(shares[i], digits=0))
        for i, label in enumerate(labels)
        for when, shares in sides.items()
    )
    rows = tuple((label, *(percent(shares[i]) for shares in sides.values())) for i, label in enumerate(labels))
    alone = "; ".join(
        f"{when}: {percent(shares[0])} are unique, {percent(sum(shares[3:]))} are in classes of five or more"
        for when, shares in sides.items()
    )
    return Figure(
        name="class-sizes",
        title="Sizes of equivalence classes",
        alternative=f"Share of records by the size of their equivalence class. {alone}.",
        chart=ColumnChart(rows=drawn, across="size of the equivalence class", up="share of records", percent=True),
        width=WIDE,
        narrow=NARROW,
        head=("Class size", *(f"{when.capitalize()}: share of records" for when in sides)),
        rows=rows,
        caption="Records with the same values of all quasi-identifiers form a class. A class of one is unique.",
    )


def _shares(histogram: Sequence[Mapping[str, int]]) -> list[float]:
    """Share of rows in each band of class sizes."""
    rows = [0] * len(SIZES)
    for entry in histogram:
        band = next(i for i, (_, last) in enumerate(SIZES) if last is None or entry["low"] <= last)
        rows[band] += entry["rows"]
    return [count / max(1, sum(rows)) for count in rows]


def _size_label(first: int, last: int | None) -> str:
    return f"{first}+" if last is None else str(first) if first == last else f"{first}–{last}"


def column_figures(report: ReportData) -> tuple[Figure, ...]:
    """Every released column, its values before and after."""
    return tuple(_column_figure(i, picture) for i, picture in enumerate(report.pictures) if picture.bars)


def changed_columns(report: ReportData) -> tuple[Figure, ...]:
    """The columns that were changed and of which something is left; all where there is nothing to compare with."""
    same = {picture.column for picture in report.pictures if _is_unchanged(picture)}
    if report.audience == "internal":
        same |= {line.column for line in report.column_table if line.unchanged or line.nothing_left}
    return tuple(figure for figure in column_figures(report) if figure.title not in same)


def _is_unchanged(picture: ColumnPicture) -> bool:
    """Whether the picture would show every mark at the end of its bar."""
    return all(bar.before is not None and abs(bar.before - bar.after) < 5e-4 for bar in picture.bars)


def _column_figure(place: int, picture: ColumnPicture) -> Figure:
    compared = any(bar.before is not None for bar in picture.bars)
    rows = tuple(
        (bar.label, percent(bar.before), percent(bar.after)) if compared else (bar.label, percent(bar.after))
        for bar in picture.bars
    )
    top = max(picture.bars, key=lambda bar: bar.after)
    caption = picture.note
    values = "1 value" if len(picture.bars) == 1 else f"{len(picture.bars)} values"
    alternative = f"Column {picture.column}: {values}; the most frequent is {top.label}, {percent(top.after)}"
    if picture.nothing_left:
        alternative = caption = f"Nothing is left of {picture.column}: every released value is empty or masked"
        caption += "."
    elif compared:
        moved = sum(abs((bar.before or 0) - bar.after) for bar in picture.bars) / 2
        alternative += f" (before: {percent(top.before)}). Total variation distance: {percent(moved)}"
        caption = f"{caption} Total variation distance: {moved:.3f}.".strip()
    return Figure(
        name=f"column-{place + 1}",
        title=picture.column,
        alternative=alternative + ".",
        chart=BarChart(rows=tuple(map(_share, picture.bars)), percent=True),
        head=("Value", "Before", "After") if compared else ("Value", "Released"),
        rows=rows,
        caption=caption,
    )


def _share(bar: Bar) -> BarRow:
    return BarRow(label=bar.label, value=bar.after, mark=bar.before, words=percent(bar.after))


def pair_figure(report: ReportData) -> Figure | None:
    """The distance of each pair of columns between original and release."""
    measure = _drawn_as(report, Picture.MATRIX)
    values = measure.get("columns", {}) if measure else {}
    if not values:
        return None
    names = [column.column for column in report.pictures] or list(report.manifest.get("columns", {}))
    cells = [
        (one, other, values[key])
        for one, other in combinations(names, 2)
        for key in (f"{one} × {other}", f"{other} × {one}")
        if key in values
    ]
    if not cells:
        return None
    used = [name for name in names if any(name in cell[:2] for cell in cells)]
    drawn = tuple(Cell(one=a, other=b, value=value, words=f"{value:.2f}") for a, b, value in cells)
    worst = max(cells, key=lambda cell: cell[2])
    return Figure(
        name="pairs",
        title="Change of pairs of columns",
        alternative=f"Distance between original and release for {len(cells)} pairs of columns. It is largest for "
        f"{worst[0]} and {worst[1]}, {worst[2]:.2f}.",
        chart=Cells(rows=drawn, names=tuple(used)),
        width=WIDE,
        narrow=NARROW,
        head=("Pair", "Distance"),
        rows=tuple((f"{a} × {b}", f"{value:.3f}") for a, b, value in cells),
        caption="Total variation distance of each pair of columns: 0 if all shares are the same, 1 if none is. "
        "Stronger colour means a larger distance.",
    )


def cost_figures(report: ReportData) -> tuple[Figure, ...]:
    """Measures with a value per column, as bars, and those by number of known events, as curves."""
    figures: list[Figure] = []
    for measure in report.measures:
        title, values = measure_label(measure), measure.get("columns", {})
        if measure_of(str(measure.get("measure"))).picture is Picture.CURVE:
            figures += _curve(measure, title, len(figures) + 1)
        as_bars = measure_of(str(measure.get("measure"))).picture is Picture.BARS
        if not as_bars or not values or not all(0 <= value <= 1 for value in values.values()):
            continue
        shown_as = percent if measure_of(str(measure.get("measure"))).percentage else number
        drawn = [BarRow(label=column, value=value, words=shown_as(value)) for column, value in values.items()]
        high = measure_of(str(measure.get("measure"))).better == "high"
        worst = (min if high else max)(drawn, key=lambda row: row.value)
        extreme = "smallest" if high else "largest"
        detail = measure.get("detail", {})
        what = detail.get("by") or ("pair of columns" if all(" × " in column for column in values) else "column")
        ends = {
            name: f"{shown_as(low)} to {shown_as(high)}" for name, (low, high) in detail.get("intervals", {}).items()
        }
        largest = sorted(range(len(drawn)), key=lambda place: -drawn[place].value)[:MOST]
        shown = tuple(drawn[place] for place in sorted(largest))
        figures.append(
            Figure(
                name=f"cost-{len(figures) + 1}",
                title=title,
                alternative=f"{_capital(title)} by {what}. The {extreme} is {worst.label}, "
                f"{worst.words}." + (f" The {MOST} largest of {len(drawn)} are shown." if len(drawn) > MOST else ""),
                chart=BarChart(rows=shown, top=1.0),
                head=(_capital(what), "Value", *(["Interval"] if ends else [])),
                rows=tuple((row.label, row.words, *([ends.get(row.label, "–")] if ends else [])) for row in drawn),
            )
        )
    return tuple(figures)


def _curve(measure: Mapping[str, Any], title: str, place: int) -> list[Figure]:
    """Unicity: the share of unique people by the number of known events, before and after."""
    detail = measure.get("detail", {})
    keys = {"before": "by_events_before", "after": "by_events"}
    sides = {when: detail[key] for when, key in keys.items() if detail.get(key)}
    if not sides:
        return []
    counts = sorted({int(count) for side in sides.values() for count in side})
    drawn = tuple(
        Place(x=count, y=side[str(count)], when=when)
        for when, side in sides.items()
        for count in counts
        if str(count) in side
    )
    most = counts[-1]
    ends = "; ".join(f"{when}: {percent(side.get(str(most)))}" for when, side in sides.items())
    return [
        Figure(
            name=f"cost-{place}",
            title=title,
            alternative=f"Share of people who are unique by the number of known events. With {most} events, {ends}.",
            chart=unicity_chart(drawn),
            head=("Known events", *(f"{when.capitalize()}: share of people" for when in sides)),
            rows=tuple((str(n), *(percent(side.get(str(n))) for side in sides.values())) for n in counts),
        )
    ]


def unicity_chart(rows: tuple[Place, ...]) -> Lines:
    """Curves of the share of people who are unique by the number of events that an attacker knows."""
    return Lines(rows=rows, across="events known to the attacker", up="share of people who are unique", percent=True)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _drawn_as(report: ReportData, picture: Picture) -> Mapping[str, Any] | None:
    """The first measure of the report that is drawn in this way."""
    return next((m for m in report.measures if measure_of(str(m.get("measure"))).picture is picture), None)
