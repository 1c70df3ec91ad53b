"""Specifications drawn as SVG that stands inside an HTML page: no outside reference, no clash of names, one label."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

__all__ = ["inline_svg", "render"]


def render(spec: Mapping[str, Any], *, ident: str, label: str, kind: str = "") -> str:
    """Draw a Vega-Lite specification. Nothing is fetched: data stands in the specification, other addresses are barred."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(dict(spec), allowed_base_urls=[])
    return inline_svg(drawn, ident=ident, label=label, kind=kind)


def inline_svg(drawn: str, *, ident: str, label: str, kind: str = "") -> str:
    """The drawing as one image with a text alternative, sized by the page, its inner names made the page's own."""
    head, body = re.match(r"<svg\b([^>]*)>(.*)</svg>\s*$", drawn, re.DOTALL).groups()  # type: ignore[union-attr]
    box = re.search(r'viewBox="([-\d. ]+)"', head)
    size = re.search(r'\bwidth="([\d.]+)" height="([\d.]+)"', head)
    if box is None or size is None:
        raise ValueError("the drawing has no size")
    body = re.sub(r"<[^>]+>", lambda tag: _own_names(tag[0], ident), body)
    return (
        f'<svg id="{ident}" class="{kind}" role="img" aria-label="{escape(label)}" viewBox="{box[1]}" width="{size[1]}" height="{size[2]}" '
        f'focusable="false">{body}</svg>'
    )


def _own_names(tag: str, ident: str) -> str:
    tag = re.sub(r'\bid="([^"]+)"', rf'id="{ident}-\1"', tag)
    tag = re.sub(r"url\(#([^)]+)\)", rf"url(#{ident}-\1)", tag)
    return re.sub(r'\bhref="#([^"]+)"', rf'href="#{ident}-\1"', tag)
