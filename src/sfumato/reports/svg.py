"""Vega-Lite specifications as inline SVG: no outside reference, unique identifiers, one text alternative."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from typing import Any

__all__ = ["inline_svg", "render"]


def render(spec: Mapping[str, Any], *, ident: str, label: str, kind: str = "") -> str:
    """Draw a Vega-Lite specification. Nothing is fetched: the data is inside, and all URLs are refused."""
    return inline_svg(_drawn(json.dumps(spec)), ident=ident, label=label, kind=kind)


@lru_cache(maxsize=128)
def _drawn(spec: str) -> str:
    """The drawing of a specification; the internal and the external page of a report show the same ones."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec, allowed_base_urls=[])
    return drawn


def inline_svg(drawn: str, *, ident: str, label: str, kind: str = "") -> str:
    """The SVG as one image with a text alternative and identifiers that start with ``ident``."""
    head, body = re.match(r"<svg\b([^>]*)>(.*)</svg>\s*$", drawn, re.DOTALL).groups()  # type: ignore[union-attr]
    box = re.search(r'viewBox="([-\d. ]+)"', head)
    size = re.search(r'\bwidth="([\d.]+)" height="([\d.]+)"', head)
    if box is None or size is None:
        raise ValueError("the drawing has no size")
    # The renderer numbers identifiers per process; the same report data must give the same page.
    names = {name: f"{ident}-{place}" for place, name in enumerate(re.findall(r'<[^>]*\bid="([^"]+)"', body))}
    body = re.sub(r"<[^>]+>", lambda tag: _own_names(tag[0], names), body)
    return (
        f'<svg id="{ident}" class="{kind}" role="img" aria-label="{escape(label)}" viewBox="{box[1]}" '
        f'width="{size[1]}" height="{size[2]}" focusable="false">{body}</svg>'
    )


def _own_names(tag: str, names: Mapping[str, str]) -> str:
    # One image with one label: screen readers skip its parts. The page sets the typeface.
    tag = re.sub(r' (?:class|role|aria-[a-z]+|pointer-events|font-family)="[^"]*"', "", tag)
    tag = re.sub(r"-?\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), tag)
    tag = re.sub(r'\bid="([^"]+)"', lambda found: f'id="{names[found[1]]}"', tag)
    return re.sub(r"url\(#([^)]+)\)", lambda found: f"url(#{names[found[1]]})", tag)
