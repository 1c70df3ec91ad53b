"""Short summaries for the terminal: verdicts, attacks and measures in a few lines, without colour where nobody watches.

Names come from files and may hold anything: they are printed as text, never read as markup, and control characters that
a terminal would obey are shown as a dot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.evaluation.formatting import attack_label, column_weights, number, percent, readable_name
from sfumato.reports.glossary import measure_title
from sfumato.reports.text import value_words

__all__ = [
    "advice_lines",
    "attack_table",
    "column_weight_lines",
    "limit_lines",
    "measure_table",
    "plain_text",
    "print_attacks",
    "print_measures",
    "print_protection",
    "reason_lines",
    "risk_bar",
    "verdict_lines",
]

Plain = Mapping[str, Any]
BAR = 20
_FOR_EXPERTS = ("nodes", "nodes_checked", "suppressed_whole")
"""Facts of a step that the report and the JSON document tell, but not the few lines here."""
_MARKS = {"holds": ("✓", "green"), "met": ("✓", "green"), "fails": ("✗", "bold red"), "not met": ("✗", "bold red")}
_ASCII = str.maketrans({"✓": "+", "✗": "x", "█": "#", "░": ".", "▏": "|", "–": "-", "→": ">", "×": "x", "│": "|"})


def print_protection(document: Plain, console: Console | None = None) -> None:
    """What ``sfumato protect`` did: rows, steps, verdicts, attacks before and after, measures."""
    out = _console(console)
    rows, original = document.get("rows"), document.get("original_rows")
    line = Text(
        f"{number(rows)} of {number(original)} records released" if original else f"{number(rows)} records released"
    )
    for step in document.get("steps", ()):
        line.append(f"\n  {plain_text(readable_name(str(step.get('step'))))}", style="bold")
        facts = [
            f"{readable_name(key)} {_brief(value)}"
            for key, value in step.items()
            if key not in ("step", "parameters", "truthful", "transitions", *_FOR_EXPERTS)
        ]
        line.append(f"  {plain_text('; '.join(facts))}" if facts else "")
    _print(out, line)
    _print(out, verdict_lines(document.get("verdicts", ())))
    if document.get("attacks"):
        _print(out, Text(" "))
        _print(out, attack_table(document["attacks"], before=document.get("attacks_before", ()), wide=out.width >= 110))
        _print(out, reason_lines(document["attacks"]))
        _print(out, column_weight_lines(document["attacks"]))
    if document.get("limits"):
        _print(out, limit_lines(document["limits"]))
        _print(out, advice_lines(document.get("advice", ())))
    if document.get("measures"):
        _print(out, Text(" "))
        _print(out, measure_table(document["measures"]))


def print_attacks(
    attacks: Sequence[Plain],
    limits: Sequence[Plain] = (),
    console: Console | None = None,
    *,
    changes: Sequence[Plain] = (),
) -> None:
    """What each attack achieved, whether that is within the limits, and what to change where it is not."""
    out = _console(console)
    _print(out, attack_table(attacks, wide=out.width >= 100))
    _print(out, reason_lines(attacks))
    _print(out, column_weight_lines(attacks))
    if limits:
        _print(out, limit_lines(limits))
        _print(out, advice_lines(changes))


def print_measures(measures: Sequence[Plain], console: Console | None = None) -> None:
    """What was measured."""
    _print(_console(console), measure_table(measures))


# --- what they are made of ----------------------------------------------------------------------------------------


def verdict_lines(verdicts: Sequence[Plain]) -> Text:
    """One line per privacy model."""
    text = Text()
    for verdict in verdicts:
        state = str(verdict.get("state"))
        text.append_text(_mark(state)).append(
            f" {plain_text(readable_name(str(verdict.get('model'))))} {state}", style="bold"
        )
        if verdict.get("worst") is not None:
            text.append(f"  worst {number(verdict['worst'])}, wanted {number(verdict.get('wanted'))}")
        if verdict.get("reason"):
            text.append(f"  {plain_text(verdict['reason'])}")
        text.append("\n")
    text.rstrip()
    return text


def limit_lines(limits: Sequence[Plain]) -> Text:
    """One line per limit."""
    text = Text()
    for limit in limits:
        state = "not checked" if limit.get("met") is None else "met" if limit["met"] else "not met"
        judged = "nothing could be judged" if limit.get("value") is None else f"judged {percent(limit['value'])}"
        text.append_text(_mark(state)).append(f" limit on {plain_text(str(limit.get('limit')))} {state}", style="bold")
        if limit.get("stopped"):
            names = ", ".join(plain_text(readable_name(name)) for name in limit["stopped"])
            judged += f"; stopped without a result: {names}"
        text.append(f"  at most {percent(limit.get('wanted'))}, {judged}\n")
    text.rstrip()
    return text


def attack_table(attacks: Sequence[Plain], *, before: Sequence[Plain] = (), wide: bool = True) -> Table:
    """Risk of each attack with interval and baseline, and a bar where there is room; before protection where known."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("attack")
    table.add_column("discloses")
    for name in (*(("before",) if before else ()), "risk", *(("",) if wide else ()), "interval", "baseline", "people"):
        table.add_column(name, no_wrap=True, justify="right" if name not in ("", "interval") else "left")
    for place, attack in enumerate(attacks):
        cells = [
            Text(plain_text(attack_label({**attack, "secret": None}))),
            Text(plain_text(str(attack.get("secret") or attack.get("discloses") or ""))),
        ]
        if before:
            same = before[place] if place < len(before) and before[place].get("attack") == attack.get("attack") else {}
            cells.append(Text(percent(same.get("risk"))))
        cells.append(Text(percent(attack.get("risk")), style="bold"))
        if attack.get("risk") is not None:
            cells += [risk_bar(attack)] if wide else []
            cells.append(Text(f"{percent(attack.get('low'))} to {percent(attack.get('high'))}"))
            sought = number(attack.get("tried"))
            if attack.get("stopped"):
                sought += f" of {number(attack.get('planned'))}"
            cells += [Text(percent(attack.get("baseline"))), Text(sought)]
        table.add_row(*cells)
    return table


def column_weight_lines(attacks: Sequence[Plain]) -> Text:
    """Which columns give people away, as the strongest attack that can tell has learned it."""
    told = [
        attack
        for attack in attacks
        if attack.get("risk") and isinstance((attack.get("detail") or {}).get("columns"), Mapping)
    ]
    strongest = max(told, key=lambda attack: float(attack["risk"]), default=None)
    if strongest is None or strongest["risk"] <= (strongest.get("baseline") or 0.0):
        return Text()
    top = column_weights(strongest, 5)
    if not top:
        return Text()
    shares = ", ".join(f"{plain_text(name)} {percent(value, digits=0)}" for name, value in top)
    return Text(f"What gives people away ({plain_text(attack_label(strongest))}), each column's share: {shares}")


def advice_lines(found: Sequence[Plain]) -> Text:
    """What to change, attack by attack."""
    text = Text()
    for item in found:
        text.append(f"What to change against {plain_text(str(item['attack']))}\n", style="bold")
        for sentence in item["changes"]:
            text.append(f"  - {plain_text(sentence)}\n")
    text.rstrip()
    return text


def reason_lines(attacks: Sequence[Plain]) -> Text:
    """Why attacks have no risk: one line for each reason."""
    text = Text()
    reasons: dict[str, list[str]] = {}
    for attack in attacks:
        if attack.get("risk") is None:
            reasons.setdefault(str(attack.get("reason") or "It does not apply."), []).append(attack_label(attack))
    for reason, names in reasons.items():
        text.append(f"– {plain_text(', '.join(names))}: no risk can be given. ", style="bold")
        text.append(f"{plain_text(reason)}\n")
    text.rstrip()
    return text


def risk_bar(attack: Plain) -> Text:
    """A bar from 0 to 100 %: solid up to the risk, a thin line where the baseline is."""
    filled = round(BAR * float(attack["risk"]))
    signs = ["█" if place < filled else "░" for place in range(BAR)]
    base = attack.get("baseline")
    if base is not None:
        signs[min(BAR - 1, round(BAR * float(base)))] = "▏" if round(BAR * float(base)) >= filled else "│"
    return Text("".join(signs), style="red" if attack["risk"] > 0.2 else "yellow" if attack["risk"] > 0.05 else "green")


def measure_table(measures: Sequence[Plain]) -> Table:
    """One line per measure, with the worst column where it speaks of columns."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", style="bold")
    table.add_column("of the original", justify="right")
    table.add_column("most affected")
    for measure in measures:
        columns, detail = measure.get("columns") or {}, measure.get("detail") or {}
        earlier = detail.get("before", detail.get("smallest_before"))
        worst = max(columns.items(), key=lambda item: item[1], default=None)
        remark = f"{worst[0]} {number(worst[1])}" if worst is not None else ""
        if measure.get("value") is None:
            remark = str(measure.get("reason") or "not applicable")
        table.add_row(
            Text(plain_text(measure_title(str(measure.get("measure"))))),
            Text(value_words(measure, measure.get("value"))),
            Text(value_words(measure, earlier) if isinstance(earlier, int | float) else ""),
            Text(plain_text(remark)),
        )
    return table


def plain_text(text: str) -> str:
    """Text without anything a terminal would obey.

    >>> plain_text("zip" + chr(27) + "[2J")
    'zip·[2J'
    """
    return "".join(sign if sign.isprintable() else "·" for sign in text)


def _brief(value: Any) -> str:
    match value:
        case Mapping():
            return ", ".join(f"{key} {_brief(item)}" for key, item in value.items())
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case list() | tuple():
            return ", ".join(f"({_brief(item)})" if isinstance(item, list | tuple) else _brief(item) for item in value)
        case _:
            return str(value)


def _mark(state: str) -> Text:
    sign, style = _MARKS.get(state, ("?", "yellow"))
    return Text(sign, style=style)


def _console(console: Console | None) -> Console:
    """Standard output; Rich leaves out colour by itself when that is no terminal, or when NO_COLOR is set."""
    if console is not None:
        return console
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)  # a file has no edge to wrap at


def _print(console: Console, what: Text | Table) -> None:
    """Print; where the output cannot write the signs used here, with plain ones."""
    if isinstance(what, Text) and not what.plain:
        return
    if console.encoding.lower().replace("-", "") not in ("utf8", "utf16", "utf32"):
        with console.capture() as capture:
            console.print(what)
        written = capture.get().translate(_ASCII).encode(console.encoding, errors="replace").decode(console.encoding)
        console.out(written, end="", highlight=False)
        return
    console.print(what)
