"""Terminal output of protect, attack and measure: verdicts, attacks and measures in a few lines.

Names come from files and may contain anything: they are printed as text and never parsed as markup, and control
characters are replaced by a dot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato.evaluation.adversaries import accepted_sentence, adversary_sentence, learned_sentences
from sfumato.evaluation.formatting import (
    Plain,
    attack_label,
    column_weights,
    in_words,
    interval_ends,
    number,
    percent,
    readable_name,
)
from sfumato.evaluation.limits import judged_words
from sfumato.measures import measure_of
from sfumato.release.standing import judge_entries, limit_state, limit_words
from sfumato.reports.synthetic_use import MARGINALS
from sfumato.reports.text import before_of, beyond_reference, measure_label, measure_value, pairings
from sfumato.wording import counted

BAR = 20
_TAB_LINES, _TAB_COLUMNS = 40, 12
"""A larger cross-tab is not printed."""
_FOR_EXPERTS = ("nodes", "nodes_checked", "suppressed_whole")
"""Facts of a step that only the report and the JSON document show."""
_MARKS = {"holds": ("✓", "green"), "met": ("✓", "green"), "fails": ("✗", "bold red"), "not met": ("✗", "bold red")}
_ASCII = str.maketrans({"✓": "+", "✗": "x", "█": "#", "░": ".", "▏": "|", "–": "-", "→": ">", "×": "x", "│": "|"})


def print_protection(document: Plain, console: Console | None = None) -> None:
    """Print the result of ``sfumato protect``: rows, steps, verdicts, attacks before and after, measures."""
    out = output_console(console)
    print_content(out, Text(plain_text(adversary_sentence(document.get("attacks", ()))), style="bold"))
    rows, original = document.get("rows"), document.get("original_rows")
    promised = any(step.get("formal_guarantee") for step in document.get("steps", ()))
    if promised:
        original = None  # a line that may be copied into a message has no exact figure beside a noisy one
    line = Text(
        f"{number(rows)} of {counted(original, 'record')} kept"
        if original and rows is not None and rows <= original
        else f"{counted(rows or 0, 'record')} kept" + (f"; the original has {number(original)}" if original else "")
    )
    for step in document.get("steps", ()):
        line.append(f"\n  {plain_text(readable_name(str(step.get('step'))))}", style="bold")
        facts = [
            f"{readable_name(key)} {in_words(value, colon=' ')}"
            for key, value in step.items()
            if key not in ("step", "parameters", "truthful", "transitions", *MARGINALS, *_FOR_EXPERTS)
        ]
        line.append(f"  {plain_text('; '.join(facts))}" if facts else "")
    print_content(out, line)
    print_content(out, verdict_lines(document.get("verdicts", ())))
    if document.get("attacks"):
        print_content(out, Text(" "))
        print_content(
            out, attack_table(document["attacks"], before=document.get("attacks_before", ()), wide=out.width >= 110)
        )
        print_content(out, reason_lines(document["attacks"]))
        print_content(out, column_weight_lines(document["attacks"]))
    if document.get("limits"):
        print_content(out, limit_lines(document["limits"], document.get("attacks", ())))
        print_content(out, advice_lines(document.get("advice", ())))
    judgement = judge_entries(document.get("verdicts", ()), document.get("limits", ()), promised=promised)
    if not judgement.publish:
        print_content(out, Text(f"{judgement.standing.label}: {judgement.sentence}"))
    for sentence in learned_sentences(document.get("attacks", ()), document.get("limits", ())):
        print_content(out, Text(plain_text(sentence)))
    if document.get("measures"):
        print_content(out, Text(" "))
        print_content(out, measure_table(document["measures"]))


def print_attacks(
    attacks: Sequence[Plain],
    limits: Sequence[Plain] = (),
    console: Console | None = None,
    *,
    changes: Sequence[Plain] = (),
    derived: Sequence[str] = (),
    readings: Sequence[str] = (),
) -> None:
    """Print the result of ``sfumato attack``: risks, recoded and derived columns, limits and advice."""
    out = output_console(console)
    print_content(out, Text(plain_text(adversary_sentence(attacks)), style="bold"))
    print_content(out, attack_table(attacks, wide=out.width >= 100))
    print_content(out, reason_lines(attacks))
    print_content(out, column_weight_lines(attacks))
    for line in readings:
        print_content(out, Text(plain_text(line)))
    if derived:
        print_content(out, Text("\nReleased columns tell a masked or removed one:", style="bold red"))
        print_content(out, Text("\n".join(f"  {line}" for line in derived)))
    if limits:
        print_content(out, limit_lines(limits, attacks))
        print_content(out, advice_lines(changes))


def print_measures(measures: Sequence[Plain], console: Console | None = None) -> None:
    """Print the result of ``sfumato measure``, with the tabs that a measure has."""
    out = output_console(console)
    print_content(out, measure_table(measures))
    for measure in measures:
        for tab in (measure.get("detail") or {}).get("tabs", ()):
            print_content(out, Text(" "))
            print_content(out, cross_tab_lines(tab))


# --- parts of the output ----------------------------------------------------------------------------------------


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


def limit_lines(limits: Sequence[Plain], attacks: Sequence[Plain] = ()) -> Text:
    """One line per limit, with what was compared with it."""
    text = Text()
    for limit in limits:
        state = limit_words(limit_state(limit.get("met")))
        judged = plain_text(judged_words(limit, attacks))
        text.append_text(_mark(state)).append(f" limit on {plain_text(str(limit.get('limit')))} {state}", style="bold")
        if limit.get("stopped"):
            names = ", ".join(plain_text(readable_name(name)) for name in limit["stopped"])
            judged += f"; out of time without a result: {names}"
        text.append(f"  at most {percent(limit.get('wanted'))}, {judged}\n")
        if accepted_sentence(limit):
            text.append(f"  {plain_text(accepted_sentence(limit))}\n")
    text.rstrip()
    return text


def attack_table(attacks: Sequence[Plain], *, before: Sequence[Plain] = (), wide: bool = True) -> Table:
    """Risk of each attack with interval and baseline, and a bar where there is room; before protection where known."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("attack")
    table.add_column("discloses")
    for name in (*(("before",) if before else ()), "risk", *(("",) if wide else ()), "interval", "baseline", "targets"):
        table.add_column(name, no_wrap=True, justify="right" if name not in ("", "interval") else "left")
    for pair in pairings(attacks, before):
        if (attack := pair.after) is None:
            continue
        cells = [
            Text(plain_text(attack_label({**attack, "secret": None}))),
            Text(plain_text(str(attack.get("secret") or attack.get("discloses") or ""))),
        ]
        if before:
            cells.append(Text(percent((pair.before or {}).get("risk"))))
        cells.append(Text(percent(attack.get("risk")), style="bold"))
        if attack.get("risk") is not None:
            cells += [risk_bar(attack)] if wide else []
            cells.append(Text(interval_ends(attack.get("low"), attack.get("high"))))
            targets = number(attack.get("tried"))
            if attack.get("stopped"):
                targets += f" of {number(attack.get('planned'))}"
            cells += [Text(percent(attack.get("baseline"))), Text(targets)]
        table.add_row(*cells)
    return table


def column_weight_lines(attacks: Sequence[Plain]) -> Text:
    """The columns that contribute most, from the strongest attack that reports column weights."""
    weighted = [
        attack
        for attack in attacks
        if attack.get("risk") and isinstance((attack.get("detail") or {}).get("columns"), Mapping)
    ]
    strongest = max(weighted, key=lambda attack: float(attack["risk"]), default=None)
    if strongest is None or strongest["risk"] <= (strongest.get("baseline") or 0.0):
        return Text()
    top = column_weights(strongest, 5)
    if not top:
        return Text()
    shares = ", ".join(f"{plain_text(name)} {percent(value, digits=0)}" for name, value in top)
    return Text(f"Columns that contribute most ({plain_text(attack_label(strongest))}): {shares}")


def advice_lines(advice: Sequence[Plain]) -> Text:
    """What to change, attack by attack."""
    text = Text()
    for item in advice:
        text.append(f"What to change against {plain_text(str(item['attack']))}\n", style="bold")
        for sentence in item["changes"]:
            text.append(f"  - {plain_text(sentence)}\n")
    text.rstrip()
    return text


def reason_lines(attacks: Sequence[Plain]) -> Text:
    """Why attacks have no risk: one line per reason."""
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
    """A bar from 0 to 100 %: solid up to the risk, a thin line at the baseline.

    The colour is that of what was learned beyond the baseline or control.
    """
    filled = round(BAR * float(attack["risk"]))
    signs = ["█" if place < filled else "░" for place in range(BAR)]
    base = attack.get("baseline")
    if base is not None:
        signs[min(BAR - 1, round(BAR * float(base)))] = "▏" if round(BAR * float(base)) >= filled else "│"
    gained = beyond_reference(attack)
    return Text("".join(signs), style="red" if gained > 0.2 else "yellow" if gained > 0.05 else "green")


def measure_table(measures: Sequence[Plain]) -> Table:
    """One line per measure, with the most affected column."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", style="bold")
    table.add_column("of the original", justify="right")
    table.add_column("most affected")
    for measure in measures:
        columns, earlier = measure.get("columns") or {}, before_of(measure)
        sign = -1 if measure_of(str(measure.get("measure"))).better == "high" else 1
        worst = max(columns.items(), key=lambda item: sign * item[1], default=None)
        remark = f"{worst[0]} {number(worst[1])}" if worst is not None else ""
        if measure.get("value") is None:
            remark = str(measure.get("reason") or "not applicable")
        table.add_row(
            Text(plain_text(measure_label(measure))),
            Text(measure_value(measure, measure.get("value"))),
            Text(measure_value(measure, earlier) if earlier is not None else ""),
            Text(plain_text(remark)),
        )
    return table


def plain_text(text: str) -> str:
    """Text without control characters.

    >>> plain_text("zip" + chr(27) + "[2J")
    'zip·[2J'
    """
    return "".join(sign if sign.isprintable() else "·" for sign in text)


def _mark(state: str) -> Text:
    sign, style = _MARKS.get(state, ("?", "yellow"))
    return Text(sign, style=style)


def cross_tab_lines(tab: Plain) -> Table | Text:
    """A cross-tab, or where to find it if it is too large for a terminal."""
    head, lines, labels = tab["head"], tab["lines"], tab["labels"]
    title = plain_text(str(tab["title"]))
    if len(lines) > _TAB_LINES or len(head) > _TAB_COLUMNS:
        return Text(f"\n{title}: {len(lines)} × {len(head) - labels} cells, too large to show here")
    table = Table(title=Text(title, style="bold"), title_justify="left", box=None, pad_edge=False)
    for place, name in enumerate(head):
        table.add_column(Text(plain_text(str(name))), justify="left" if place < labels else "right", overflow="fold")
    for line in lines:
        table.add_row(*(Text(plain_text(_cell(value))) for value in line))
    return table


def _cell(value: object) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def output_console(console: Console | None) -> Console:
    """Standard output. Rich omits colour if that is no terminal or NO_COLOR is set."""
    if console is not None:
        return console
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=140)  # a file has no width


def print_content(console: Console, content: Text | Table) -> None:
    """Print; with ASCII signs where the encoding lacks the others."""
    if isinstance(content, Text) and not content.plain:
        return
    if console.encoding.lower().replace("-", "") not in ("utf8", "utf16", "utf32"):
        with console.capture() as capture:
            console.print(content)
        written = capture.get().translate(_ASCII).encode(console.encoding, errors="replace").decode(console.encoding)
        console.out(written, end="", highlight=False)
        return
    console.print(content)
