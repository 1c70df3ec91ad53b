"""Marks of a picture: lines, rectangles, dots and text as SVG, and the drawing that holds them.

"Before" and "after" differ in shape as well as in colour (Okabe and Ito's vermilion and blue), so they can be told
apart in grey.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

INK, MUTED, GRID, PAGE = "#1c2630", "#56616c", "#e3e6e8", "#ffffff"
BEFORE, BEFORE_SOFT, AFTER = "#c4500a", "#f6d3bd", "#0b6aa8"
HEAT = ("#eaf2f8", "#c3dcee", "#8dbcdc", "#2b77aa", "#0f5c93")
"""Five steps of one hue, light to dark."""
ON_LIGHT, ON_DARK = "#1c2631", "#fffffe"
"""Text in light and dark cells; one shade off the others so that the dark theme can replace them alone."""
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"

_NARROW, _WIDE = frozenset("iljtfrI.,:;'|!()[] -"), frozenset("mwMW@%…→×")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A finished picture: its size in pixels and its marks."""

    width: float
    height: float
    body: str

    def svg(self, *, ident: str, label: str, kind: str = "") -> str:
        """An element for a page: one image with one text alternative. The page sets the typeface."""
        return (
            f'<svg id="{ident}" class="{kind}" role="img" aria-label="{escape(label)}" '
            f'viewBox="0 0 {self.width:g} {self.height:g}" width="{self.width:g}" height="{self.height:g}" '
            f'font-size="12" focusable="false">{self.body}</svg>'
        )

    def file(self, *, title: str) -> str:
        """A file of its own, on white."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="{FONT}" font-size="12">'
            f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="#ffffff"/>{self.body}</svg>\n'
        )


def rule(x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dash: str = "") -> str:
    """A straight line."""
    return path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", colour, width=width, dash=dash)


def path(steps: str, colour: str, *, width: float = 1, dash: str = "") -> str:
    """A line along ``steps``, in SVG's own notation."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{steps}" stroke="{colour}" stroke-width="{width:g}" fill="none"{dashed}/>'


def rect(
    x: float, y: float, width: float, height: float, fill: str, *, edge: str = "", corner: float = 0, opacity: float = 1
) -> str:
    """A rectangle, with an edge if a colour is given for it."""
    more = (f' stroke="{edge}"' if edge else "") + (f' rx="{corner:g}"' if corner else "")
    more += f' opacity="{opacity:g}"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{fill}"{more}/>'


def circle(x: float, y: float, radius: float, fill: str) -> str:
    """A dot."""
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{fill}"/>'


def diamond(x: float, y: float, radius: float, fill: str) -> str:
    """A square on its corner."""
    r = radius
    return f'<path d="M{x:.1f} {y - r:.1f}l{r:g} {r:g}l-{r:g} {r:g}l-{r:g} -{r:g}z" fill="{fill}"/>'


def text(
    x: float, y: float, words: str, colour: str = INK, *, anchor: str = "start", bold: bool = False, size: float = 12,
    turned: float = 0, whole: str = "", halo: bool = True,
) -> str:  # fmt: skip
    """Text on its base line. An outline in the colour of the page keeps it readable on lines.

    ``whole`` is what a reader sees who points at text that was cut.
    """
    more = ' font-weight="600"' if bold else ""
    more += f' font-size="{size:g}"' if size != 12 else ""
    more += f' transform="rotate({turned:g} {x:.1f} {y:.1f})"' if turned else ""
    more += f' stroke="{PAGE}" stroke-width="3" paint-order="stroke" stroke-linejoin="round"' if halo else ""
    tip = f"<title>{escape(whole)}</title>" if whole and whole != words else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{more}>{tip}{escape(words)}</text>'


def text_width(words: str, size: float = 12) -> float:
    """Room for a text in a typeface that is a little wider than most.

    >>> text_width("ill") < text_width("www")
    True
    """
    return size * sum(0.36 if c in _NARROW else 0.95 if c in _WIDE or ord(c) > 0x2E80 else 0.62 for c in words)


def cut(words: str, room: float, size: float = 12) -> str:
    """A text that fits, with an ellipsis where it does not.

    >>> cut("diagnosis", 200), cut("a very long name of a column", 60)
    ('diagnosis', 'a very l…')
    """
    if text_width(words, size) <= room:
        return words
    while words and text_width(words + "…", size) > room:
        words = words[:-1]
    return words.rstrip() + "…"


def wrapped(words: str, room: float, *, most: int = 2, size: float = 12) -> list[str]:
    """A text in at most ``most`` lines, broken between words; what does not fit is cut.

    >>> wrapped("attribute linkage: diagnosis", 110)
    ['attribute linkage:', 'diagnosis']
    """
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= room:
            lines[-1] = longer
        elif len(lines) == most:
            lines[-1] = longer  # cut below
        else:
            lines.append(word)
    return [cut(line, room, size) for line in lines] or [""]


def label_lines(right: float, middle: float, words: str, room: float, *, most: int = 2) -> str:
    """The label of a row: flush right at ``right``, its lines centred on ``middle``."""
    lines = wrapped(words, room, most=most)
    whole = words if "…" in "".join(lines) else ""
    first = middle + 4 - 7 * (len(lines) - 1)
    return "".join(text(right, first + 14 * place, line, anchor="end", whole=whole) for place, line in enumerate(lines))
