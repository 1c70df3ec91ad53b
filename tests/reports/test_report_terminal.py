"""Summaries on the terminal: short, readable without colour, and deaf to what names of columns may say."""

from __future__ import annotations

import io

from rich.console import Console

from report_sample import sample_account
from sfumato.reports.terminal import print_attacks, print_measures, print_protection, risk_bar

SILENT = {"attack": "linkage", "discloses": "identity", "risk": None, "reason": "Nobody knows who is who."}


def printed(show: object, *arguments: object, encoding: str = "utf-8", width: int = 120, colour: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    show(*arguments, console=Console(file=file, width=width, force_terminal=colour, highlight=False))  # type: ignore[operator]
    file.flush()
    return raw.getvalue().decode(encoding)


def document() -> dict[str, object]:
    account = sample_account()
    return {
        "rows": 19241,
        "original_rows": 20000,
        "steps": list(account.outcomes),
        "verdicts": account.manifest["verdicts"],
        "attacks_before": [*account.attacks_before, SILENT],
        "attacks": [*account.attacks, SILENT],
        "measures": account.measures,
        "limits": account.limits,
    }


def test_protection_says_what_matters_without_colour():
    text = printed(print_protection, document())
    assert "19,241 of 20,000 records kept" in text
    assert "k-anonymity holds" in text
    assert "1.7% to 2.4%" in text
    assert "limit on risk met" in text
    assert "\x1b" not in text


def test_results_are_paired_by_what_they_are_and_not_by_place():
    hiv, age = ({"attack": "attribute-linkage", "discloses": "attribute", "secret": name} for name in ("hiv", "age"))
    release = [{**hiv, "risk": 0.2}, {**age, "risk": 0.3}]
    original = [{**age, "risk": 0.71}, {**hiv, "risk": 0.82}]
    shown = printed(print_protection, {**document(), "attacks": release, "attacks_before": original})
    lines = {line.split()[2]: line for line in shown.splitlines() if line.startswith("attribute linkage")}
    assert "82%" in lines["hiv"]
    assert "71%" in lines["age"]


def test_the_line_of_a_limit_says_what_was_judged():
    learned = {"attack": "attribute-linkage", "discloses": "attribute", "secret": "hiv", "judged": 0.066, "risk": 0.29}
    learned |= {"low": 0.27, "high": 0.312, "reference": 0.263}
    limit = {"limit": "attribute", "wanted": 0.09, "value": 0.066, "met": True, "attack": "attribute-linkage"}
    text = " ".join(printed(print_attacks, [{**learned, "judged": 0.01, "secret": "age"}, learned], [limit]).split())
    assert "limit on attribute met at most 9%, judged 6.6%: upper end of the excess over 26.3%" in text
    assert "attribute linkage: hiv is right about 29% (27% to 31.2%)" in text


def test_no_risk_is_a_reason_and_not_a_zero():
    text = printed(print_attacks, [SILENT], [{"limit": "risk", "wanted": 0.1, "value": None, "met": False}])
    assert "no risk can be given. Nobody knows who is who." in text
    assert "0%" not in text.replace("10%", "")
    assert "limit on risk not met" in text


def test_a_narrow_terminal_keeps_the_numbers_and_drops_the_bar():
    narrow, wide = (printed(print_protection, document(), width=width) for width in (84, 130))
    assert "1.7% to 2.4%" in narrow
    assert "░" in wide
    assert "░" not in narrow


def test_an_output_that_knows_only_ascii_gets_ascii():
    text = printed(print_protection, document(), encoding="ascii")
    assert "+ k-anonymity holds" in text
    assert "#####" not in text.split("\n")[0]


def test_names_are_text():
    measure = {"measure": "marginals", "value": 0.2, "columns": {"[red]x[/red]\x1b[2J": 0.2}}
    for colour in (False, True):
        text = printed(print_measures, [measure], colour=colour)
        assert "[red]x[/red]·[2J" in text
        assert "\x1b[2J" not in text


def test_bar_is_as_long_as_the_risk():
    assert risk_bar({"risk": 0.5, "baseline": None}).plain.count("█") == 10
    assert risk_bar({"risk": 0.0, "baseline": 0.0}).plain.count("█") == 0
    assert risk_bar({"risk": 1.0, "baseline": None}).plain.count("█") == 20


def test_bars_are_coloured_by_what_was_learned_beyond_the_baseline():
    """Half right is no news where guessing gets half right; for identity every success counts."""
    attribute = {"discloses": "attribute", "baseline": 0.5}
    assert risk_bar({**attribute, "risk": 0.51}).style == "green"
    assert risk_bar({**attribute, "risk": 0.55}).style == "yellow"
    assert risk_bar({**attribute, "risk": 0.965}).style == "red"
    assert risk_bar({**attribute, "risk": 0.965, "control": 0.96}).style == "yellow"
    assert risk_bar({"discloses": "identity", "baseline": 0.5, "risk": 0.51}).style == "red"


def test_one_record_is_one_record():
    one = {**document(), "rows": 1, "original_rows": 1}
    assert "1 of 1 record kept" in printed(print_protection, one)
    assert "1 record kept" in printed(print_protection, {**one, "original_rows": None})
