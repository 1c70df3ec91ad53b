"""Linkage of an outside file without the original, on the terminal and as one offline HTML page."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.attacks.recoding import ColumnReading
from sfumato.evaluation.formatting import Plain, number, percent
from sfumato.reports.page import page_html
from sfumato.reports.terminal import output_console, plain_text, print_content


def band_label(band: Plain) -> str:
    """The number of fitting rows of a line of the table.

    >>> band_label({"from": 0, "to": 0}), band_label({"from": 2, "to": 4}), band_label({"from": 50, "to": None})
    ('none', '2 to 4', '50 or more')
    """
    low, high = band["from"], band["to"]
    if high is None:
        return f"{low} or more"
    return ("none" if low == 0 else str(low)) if low == high else f"{low} to {high}"


def outside_sentences(document: Plain) -> tuple[str, ...]:
    """The result in sentences: fitting rows, expected right matches, what candidates have in common."""
    people, one_row, sure = document["people"], document["fit_one_row"], document["surely_right"]
    expected = document["expected_right_matches"]
    everybody = f"{expected['everybody_in_release']:.1f} if everybody whom a row fits is in the release"
    sentences = [f"Exactly one released row fits {_people(one_row)} of {number(people)} in the outside file."]
    if document["membership_estimated"]:
        sentences += [
            f"About {expected['self_linkage']:.1f} right matches are expected (self-linkage, which estimates that "
            f"{percent(document['estimated_share_in_release'])} of the outside people are in the release); "
            f"{everybody}.",
            f"For {_people(sure)} the best match is right with a probability of at least 95%, at the lower end of that "
            "estimate.",
        ]
    else:
        sentences.append(
            "How many of the outside people are in the release cannot be estimated: nearly everybody would find a row. "
            f"Right matches: {everybody}, fewer otherwise."
        )
    if expected.get("population") is not None:
        sentences.append(f"By the population model, {expected['population']:.1f} right matches are expected.")
    for name, counts in document["tells"].items():
        one, nearly_one = counts["one value"], counts["nearly one value"]
        sentences.append(
            f"“{name}”: all fitting rows have the same value for {_people(one)}, and at least 90% of them for "
            f"{_people(nearly_one)}."
        )
    sentences += [str(ColumnReading.of(entry)) for entry in document.get("readings", ())]
    return tuple(sentences)


def _people(count: int) -> str:
    return "1 person" if count == 1 else f"{number(count)} people"


def print_outside(document: Plain, console: Console | None = None) -> None:
    """Print the result: sentences, and people by the number of fitting rows."""
    out = output_console(console)
    for sentence in outside_sentences(document):
        print_content(out, Text(plain_text(sentence)))
    print_content(out, Text(" "))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("rows that fit")
    for name in ("people", "expected right", "surely right"):
        table.add_column(name, justify="right", no_wrap=True)
    for band in document["candidates"]:
        counts = number(band["people"]), f"{band['expected']:.1f}", number(band["surely_right"])
        table.add_row(band_label(band), *counts)
    print_content(out, table)


def outside_html(document: Plain) -> str:
    """The report as one offline page. It shows no row and no value, but counts that only the sender should see."""
    return page_html(
        "outside.html",
        document=document,
        sentences=outside_sentences(document),
        bands=[(band_label(band), band) for band in document["candidates"]],
    )
