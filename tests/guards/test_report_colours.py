"""The report's colours can be read: contrast AA in both themes, and no colour of a picture is forgotten in the dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from report_sample import sample_account
from sfumato.drawing import marks as pictures
from sfumato.reports import report_html

COLOUR = re.compile(r"#[0-9a-f]{6}")
CSS = files("sfumato.reports").joinpath("templates/report.css").read_text(encoding="utf-8")
LIGHT_CSS, _, REST = CSS.partition("@media screen and (prefers-color-scheme: dark)")
DARK_CSS = REST.partition("\n}\n")[0]


def variables(css: str) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", css))


LIGHT = variables(LIGHT_CSS)
DARK = {**LIGHT, **variables(DARK_CSS)}


def repainted(theme: dict[str, str]) -> dict[str, str]:
    """Colour of the specification to the colour seen in the dark."""
    rules = re.findall(r'\[(?:fill|stroke)="(#[0-9a-f]{6})"\] \{ (?:fill|stroke): ([^;]+);', DARK_CSS)
    return {was: theme[now[6:-1]] if now.startswith("var(") else now for was, now in rules}


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_scale_of_contrast_is_right():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("ink", ["ink", "muted", "before", "after"])
@pytest.mark.parametrize("ground", ["paper", "card", "wash"])
def test_text_has_contrast_aa(theme: dict[str, str], ink: str, ground: str):
    assert contrast(theme[ink], theme[ground]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("state", ["good", "bad", "open"])
def test_judgements_have_contrast_aa(theme: dict[str, str], state: str):
    assert contrast(theme[state], theme[f"{state}-wash"]) >= 4.5


def test_marks_stand_out_from_the_page():
    dark = repainted(DARK)
    for colour in (pictures.BEFORE, pictures.AFTER, pictures.MUTED):
        assert min(contrast(colour, LIGHT["paper"]), contrast(colour, LIGHT["card"])) >= 3
        assert min(contrast(dark[colour], DARK["paper"]), contrast(dark[colour], DARK["card"])) >= 3


def test_words_in_heat_cells_can_be_read():
    dark = repainted(DARK)
    low, high = pictures.HEAT[:3], pictures.HEAT[3:]
    for cells, ink in ((low, pictures.ON_LIGHT), (high, pictures.ON_DARK)):
        for cell in cells:
            assert contrast(cell, ink) >= 4.5, f"light theme, {cell}"
            assert contrast(dark[cell], dark[ink]) >= 4.5, f"dark theme, {cell}"


def test_every_colour_of_a_picture_is_repainted_in_the_dark():
    page = report_html(sample_account(), "internal")
    used = {colour for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) for colour in COLOUR.findall(svg)}
    assert len(used) > 8
    assert used <= set(repainted(DARK))


def test_print_is_light():
    assert "@media screen and (prefers-color-scheme: dark)" in CSS
    assert CSS.count("prefers-color-scheme") == 1
