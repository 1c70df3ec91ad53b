"""The page: complete, offline, accessible, and silent about what its reader may not know."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from report_sample import attack, sample_account
from sfumato.errors import BadParameter, OutputExists
from sfumato.reports import Bar, ColumnPicture, ReportData, report_html, report_json, write_report
from sfumato.reports.figures import cost_figures
from sfumato.reports.text import summary

VOID = {"meta", "br", "hr", "img", "link", "input"}
PRIVATE = {
    "original rows": "20,000",
    "suppressed": "759",
    "seed": "718281",
    "people tried": "8,093",
    "hits after": "162",
    "unique before": "17391",
    "classes before": "18517",
    "riskiest row": "15320",
    "risk before": "87.1%",
    "exact prosecutor before": "0.9263",
    "exact marginal": "0.031",
    "original file": "hospital.csv",
    "outside file": "voters.csv",
    "exact score": "0.241932",
}


class Reader(HTMLParser):
    """Every element with its attributes, and the text in it; unbalanced tags are an error."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes, _ in self.elements if name == tag]


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    account = sample_account()
    return {"internal": report_html(account, "internal"), "external": report_html(account, "external")}


@pytest.fixture(params=["internal", "external"])
def page(request: pytest.FixtureRequest, pages: dict[str, str]) -> str:
    return pages[request.param]


def test_page_is_balanced_and_says_its_language(page: str):
    reader = read(page)
    assert page.startswith("<!DOCTYPE html>")
    assert reader.all("html") == [{"lang": "en"}]
    assert len(reader.all("main")) == len(reader.all("h1")) == len(reader.all("title")) == 1


def test_page_loads_nothing_and_runs_nothing(page: str):
    reader = read(page)
    assert not {"script", "link", "iframe", "object", "embed", "img", "form", "base"} & {
        t for t, _, _ in reader.elements
    }
    for tag, attributes, _ in reader.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), f"{tag} has {name}"
            assert name != "style", f"{tag} has a style of its own, which the policy forbids"
            if name in ("href", "src", "xlink:href", "action"):
                assert (value or "").startswith("#"), f"{tag} points to {value}"
    assert "@import" not in page
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))
    assert "http://" not in page
    assert "https://" not in page


def test_policy_allows_the_style_sheet_by_its_hash_and_nothing_else(page: str):
    reader = read(page)
    [policy] = [m["content"] for m in reader.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy is not None
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert "unsafe" not in policy


def test_headings_come_in_order(page: str):
    levels = [int(tag[1]) for tag, _, _ in read(page).elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_figure_has_words_and_numbers(page: str):
    figures = page.split("<figure")[1:]
    assert len(figures) >= 5
    for figure in figures:
        inside = figure.partition("</figure>")[0]
        assert re.search(r'<svg [^>]*role="img" aria-label="[^"]{20,}"', inside)
        assert re.search(r"<figcaption>[^<]{5,}", inside)
        assert inside.count("<tr>") >= 2
        assert "<caption>" in inside
        assert '<th scope="col"' in inside


def test_names_of_elements_are_unique_and_links_lead_somewhere(page: str):
    reader = read(page)
    names = [str(a["id"]) for _, a, _ in reader.elements if "id" in a]
    assert len(names) == len(set(names))
    for link in reader.all("a"):
        assert str(link["href"])[1:] in names
    for _, attributes, _ in reader.elements:
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in names
        for target in re.findall(r"url\(#([^)]+)\)", " ".join(str(v) for v in attributes.values())):
            assert target in names


def test_the_answer_comes_first(pages: dict[str, str]):
    text = read(pages["internal"]).text
    answer = text.index("found 87 of every 100 people")
    assert answer < text.index("Requirements and results")
    assert "on the release it is 2 of every 100" in text
    assert "every released combination of “zip”, “birth” and “sex” belongs to at least 5 records" in text
    assert "Not guaranteed" in text


@pytest.mark.parametrize("what", PRIVATE)
def test_external_report_is_silent(what: str, pages: dict[str, str]):
    reader = read(pages["external"])
    labels = " ".join(str(a.get("aria-label", "")) for _, a, _ in reader.elements)
    for spelling in {PRIVATE[what], PRIVATE[what].replace(",", "")}:
        for text in (reader.text, labels, report_json(sample_account(), "external")):
            assert not re.search(rf"(?<![\w.]){re.escape(spelling)}(?!\w)", text)


def test_the_planted_numbers_are_in_the_internal_report(pages: dict[str, str]):
    """Or the test above could not fail."""
    everything = read(pages["internal"]).text + report_json(sample_account(), "internal")
    assert [what for what, planted in PRIVATE.items() if planted not in everything] == []


def test_external_report_says_what_it_leaves_out(pages: dict[str, str]):
    text = read(pages["external"]).text
    assert "What this external report leaves out" in text
    assert "records at highest risk" in text
    assert "What this external report leaves out" not in read(pages["internal"]).text


def test_external_pictures_have_no_before():
    twin = json.loads(report_json(sample_account(), "external"))
    assert twin["attacks_before"] == []
    assert all(bar["before"] is None for column in twin["columns"] for bar in column["bars"])
    for spec in twin["pictures"].values():
        rows = spec["rows"]
        assert rows
        assert all(row.get("when") != "before" and row.get("mark") is None for row in rows)


def test_labels_that_only_the_original_has_do_not_go_out():
    gone = ColumnPicture(
        column="town", role="quasi", kind="category",
        bars=(Bar(label="Secretville", before=0.5, after=0.0), Bar(label="Town", before=0.5, after=1.0)),
    )  # fmt: skip
    account = sample_account(columns=(gone,))
    assert "Secretville" in report_html(account, "internal")
    assert "Secretville" not in report_html(account, "external") + report_json(account, "external")


def test_an_interval_only_grows_on_its_way_out():
    """Rounded for strangers: the lower end down, the upper end up, and so is what a limit was held against."""
    told = {**attack("linkage", "identity", 31, 1000, 0.0), "risk": 0.0314, "low": 0.0219, "high": 0.0901}
    limit = {"limit": "risk", "wanted": 0.09, "value": 0.0901, "met": False}
    outside = sample_account(attacks=(told,), limits=(limit,)).external()
    assert [outside.attacks[0][key] for key in ("low", "risk", "high")] == [0.021, 0.031, 0.091]
    assert outside.limits[0] == {"limit": "risk", "wanted": 0.09, "value": 0.091, "met": False}


def test_an_unknown_measure_stays_at_home():
    strange = {"measure": "head-count", "value": 31337.0, "columns": {"zip": 31337.0}, "low": None, "high": None}
    account = sample_account(measures=(strange,))
    assert "31,337" in report_html(account, "internal")
    outside = report_html(account, "external") + report_json(account, "external")
    assert "31337" not in outside
    assert "31,337" not in outside


def test_twin_is_the_account():
    account = sample_account()
    twin = json.loads(report_json(account, "internal"))
    assert ReportData.from_dict(twin) == account
    outside = json.loads(report_json(account, "external"))
    assert ReportData.from_dict(outside) == account.external()


def test_what_was_left_out_does_not_come_back():
    outside = sample_account().external()
    assert outside.for_audience("external") is outside
    with pytest.raises(BadParameter, match="cannot become an internal one"):
        outside.for_audience("internal")


def test_public_recipe_with_a_seed_is_refused():
    with pytest.raises(BadParameter, match="names the seed"):
        sample_account(recipe_public={"sfumato": 1, "seed": 7})


HOSTILE = [
    '<script>alert("1")</script>',
    "'\"><img src=x onerror=alert(1)>",
    "{{ 7*7 }}",
    "</style>",
    "a]]>b&amp;",
    "url(http://x)",
]


@pytest.mark.parametrize("audience", ["internal", "external"])
def test_hostile_names_stay_text(audience: str):
    sample = sample_account()
    bars = tuple(Bar(label=name, before=0.1, after=0.1) for name in HOSTILE)
    columns = tuple(ColumnPicture(column=n, role="quasi", kind="category", bars=bars, note=n) for n in HOSTILE)
    declared = {name: {"role": "quasi"} for name in HOSTILE}
    verdict = {"model": HOSTILE[0], "state": "fails", "worst": 1, "wanted": 5, "reason": HOSTILE[1]}
    steps = [{"step": HOSTILE[0], "parameters": {HOSTILE[1]: HOSTILE[0]}}]
    attacks = tuple(
        {**attack, "attack": HOSTILE[0], "secret": HOSTILE[1], "threat": HOSTILE[0]} for attack in sample.attacks
    )
    measures = (
        {"measure": "marginals", "value": 0.1, "columns": dict.fromkeys(HOSTILE, 0.1)},
        {"measure": "pairs", "value": 0.1, "columns": {f"{HOSTILE[0]} × {HOSTILE[1]}": 0.1}},
    )
    account = replace(
        sample,
        title=HOSTILE[0],
        versions={HOSTILE[0]: HOSTILE[1]},
        files={HOSTILE[0]: HOSTILE[1]},
        manifest={**sample.manifest, "columns": declared, "verdicts": [verdict], "steps": steps},
        recipe={"columns": declared},
        recipe_public={"columns": declared},
        columns=columns,
        attacks=attacks,
        measures=measures,
    )
    page = report_html(account, audience)  # type: ignore[arg-type]
    reader = read(page)
    tags = {tag for tag, _, _ in reader.elements}
    assert not {"script", "img"} & tags
    assert not any(name.startswith("on") for _, attributes, _ in reader.elements for name in attributes)
    assert page.count("</style>") == 1
    assert "49" not in reader.text.replace("0.49", "")[: len(HOSTILE[0]) + 200]
    assert HOSTILE[0] in reader.text
    json.loads(report_json(account, audience))  # type: ignore[arg-type]


def test_a_report_of_almost_nothing_is_still_a_report():
    bare = ReportData(
        title="Bare", created="2026-01-01T00:00:00+00:00", versions={}, manifest={"rows": 3}, files={}, recipe_public={}
    )
    for audience in ("internal", "external"):
        text = read(report_html(bare, audience)).text
        assert "No attack was run on the release" in text
        assert "nothing is guaranteed" in text
        assert "No limit on risk was set" in text


def test_failing_verdicts_and_limits_head_the_report():
    manifest = {**sample_account().manifest}
    manifest["verdicts"] = [{"model": "k-anonymity", "state": "fails", "worst": 1, "wanted": 5, "failing": 12}]
    text = read(report_html(sample_account(manifest=manifest), "internal")).text
    assert text.index("Not met") < text.index("Requirements and results")
    assert "Do not publish the release" in text


def test_an_attack_without_risk_gives_its_reason_and_no_zero():
    silent = {"attack": "linkage", "discloses": "identity", "risk": None, "reason": "Nobody knows who is who."}
    account = sample_account(attacks=(silent,), attacks_before=())
    text = read(report_html(account, "internal")).text
    assert "no risk can be given. Nobody knows who is who." in text
    assert "No attack was run on the release" in text


def test_reasons_given_to_the_owner_do_not_go_out():
    told = "The row map has 31337 rows."
    attack = {"attack": "linkage", "discloses": "identity", "risk": None, "reason": told}
    measure = {"measure": "ncp", "value": None, "columns": {}, "reason": told}
    account = sample_account(attacks=(attack,), measures=(measure,))
    assert told in report_html(account, "internal")
    outside = report_html(account, "external") + report_json(account, "external")
    assert "31337" not in outside
    assert "It does not apply to this release." in outside


def test_writing_is_whole_and_never_over_an_existing_file(tmp_path: Path):
    file = tmp_path / "report.html"
    write_report(sample_account(), file, audience="external")
    assert file.read_text(encoding="utf-8") == report_html(sample_account(), "external")
    with pytest.raises(OutputExists):
        write_report(sample_account(), file, audience="internal")
    write_report(sample_account(), file, audience="internal", force=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_what_a_model_of_identity_does_not_promise_is_said():
    def answer(model: str) -> str:
        manifest = {**sample_account().manifest}
        manifest["verdicts"] = [{"model": model, "state": "holds", "worst": 2, "wanted": 2}]
        return read(report_html(sample_account(manifest=manifest), "external")).text

    assert "Not guaranteed: that records which look alike differ in diagnosis" in answer("k-anonymity")
    assert "which look alike differ" in answer("maximum-risk")
    assert "which look alike differ" not in answer("l-diversity")
    assert "t-closeness holds, that is" not in answer("t-closeness")
    assert "nothing is guaranteed. Estimated, not guaranteed: an estimated share" in answer("population-uniqueness")
    assert "with a probability above 2 (maximum-risk)" in answer("maximum-risk")
    assert "of another package holds" in answer("of-another-package")


def test_the_same_account_gives_the_same_page():
    assert report_html(sample_account(), "internal") == report_html(sample_account(), "internal")


def test_many_bars_are_cut_and_the_table_has_them_all() -> None:
    values = {f"a{i} × b{i}": i / 100 for i in range(60)}
    [figure] = cost_figures(sample_account(measures=({"measure": "correlations", "value": 0.1, "columns": values},)))
    assert figure.head[0] == "Pair of columns"
    assert len(figure.rows) == 60
    assert "The 20 largest of 60 are shown." in figure.alternative
    assert "a59 × b59" in str(figure.chart)
    assert "a39 × b39" not in str(figure.chart)


def test_the_recipe_on_the_page_says_nothing_empty() -> None:
    seeded: dict[str, object] = {
        "sfumato": 1,
        "seed": 7,
        "columns": {"zip": {"role": "quasi"}},
        "attacks": [],
        "steps": [{"x": {"w": {}}}],
    }
    page = report_html(sample_account(recipe=seeded), "internal")
    assert "attacks: []" not in page
    assert "which is a secret" in page
    del seeded["seed"]
    assert "keep it to yourself" not in report_html(sample_account(recipe=seeded), "internal")


def test_the_summary_names_the_strongest_of_all_attacks() -> None:
    widest = attack("any-columns", "identity", 990, 1000, 0.001, any_columns=True, knows=["height", "weight"])
    account = sample_account()
    account = replace(account, attacks=(*account.attacks, widest))
    sentence = next(line for line in summary(account) if "the strongest attack" in line)
    assert sentence.startswith("On the release, the strongest attack that was run (any columns) found 99 of every 100")
    assert (
        "it knows “height” and “weight”. Before protection, the strongest attack that knows the quasi-identifiers"
        in sentence
    )


def test_the_first_page_has_one_sentence_three_figures_and_what_was_judged():
    limit = {"limit": "risk", "wanted": 0.09, "value": 0.066, "met": True, "attack": "linkage"}
    page = report_html(sample_account(limits=(limit,)), "internal")
    first = page.partition('id="answer"')[2].partition('<nav class="contents"')[0]
    assert first.partition('<dl class="facts">')[2].partition("</dl>")[0].count("<dt>") == 3
    assert "at most 9%, judged 6.6%: upper end of the interval of the risk" in first
    assert first.index('class="lead"') < first.index('class="facts"') < first.index("Not guaranteed")
    assert first.index("Not guaranteed") < first.index("Date and signature")


def test_an_attack_on_many_columns_is_described_once():
    secrets = [f"secret{number}" for number in range(9)]
    told = [{**attack("attribute-linkage", "attribute", 31, 1000, 0.0), "secret": name} for name in secrets]
    threat = "Looks up the equivalence class of a person."
    account = sample_account(attacks=tuple({**one, "threat": threat} for one in told), attacks_before=())
    text = read(report_html(account, "internal")).text
    assert text.count(threat) == 1
    described = text.partition(threat)[2]
    assert all(f"{name}: It was right about 3.1 of every 100" in described for name in secrets)


def test_the_report_does_not_deny_an_attacker_that_it_shows():
    """Attackers who know undeclared columns are simulated, or are said not to be."""
    undeclared = "attackers who know columns that are not declared as quasi-identifiers"
    wide = {**attack("any-columns", "identity", 31, 1000, 0.0), "any_columns": True, "knows": ["zip", "ill"]}
    without = tuple(one for one in sample_account().attacks if not one.get("any_columns"))
    assert undeclared in read(report_html(sample_account(attacks=without), "internal")).text
    assert undeclared not in read(report_html(sample_account(attacks=(*without, wide)), "internal")).text
