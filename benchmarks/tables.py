"""Put recorded figures into the documentation.

    python benchmarks/tables.py             # rewrite the tables
    python benchmarks/tables.py --check     # exit with code 1 if a table differs from its record

A page marks the place by `<!-- figures: NAME TABLE -->` and `<!-- end of figures -->`. Between the two stands what
`benchmarks/results/NAME.json` holds: the table, and a line with command, date and machine.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from record import RESULTS, cell

DOCS = Path(__file__).parents[1] / "docs"
PLACE = re.compile(r"(<!-- figures: (\S+) (\S+) -->\n)(.*?)(<!-- end of figures -->)", re.DOTALL)


def markdown(table: dict[str, Any]) -> str:
    """The table and where it comes from."""
    forms = table.get("formats") or [""] * len(table["columns"])
    lines = ["| " + " | ".join(table["columns"]) + " |", "|" + "---|" * len(table["columns"])]
    lines += ["| " + " | ".join(cell(v, f) for v, f in zip(row, forms, strict=True)) + " |" for row in table["rows"]]
    on = table["machine"]
    where = f"{on['cores']} cores" + (f" ({on['processor']})" if on.get("processor") else "")
    if "load" in on:
        where += f", load {on['load']}"
    note = f" {table['note']}" if table.get("note") else ""
    return "\n".join([*lines, "", f"*`{table['command']}`, {table['date']}, {where}.{note}*", ""])


def render(text: str) -> str:
    """A page with all of its tables from the records."""

    def fill(match: re.Match[str]) -> str:
        document = json.loads((RESULTS / f"{match[2]}.json").read_text(encoding="utf-8"))
        return f"{match[1]}\n{markdown(document['tables'][match[3]])}\n{match[5]}"

    return PLACE.sub(fill, text)


def main() -> None:
    stale = []
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = render(text)
        if new != text:
            stale.append(page.relative_to(DOCS).as_posix())
            if "--check" not in sys.argv:
                page.write_text(new, encoding="utf-8")
    if stale and "--check" in sys.argv:
        sys.exit(f"differs from benchmarks/results: {', '.join(stale)}; run `make docs`")


if __name__ == "__main__":
    main()
