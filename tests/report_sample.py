"""A synthetic account for the report's tests: a hospital file of 20,000 people, before and after protection."""

from __future__ import annotations

from typing import Any

from sfumato.attacks import Arm, Discloses, Outcome
from sfumato.evaluation import attack_to_dict
from sfumato.reports import Bar, ColumnPicture, ReportData


def attack(name: str, discloses: str, hits: int, tried: int, baseline: float, **more: Any) -> dict[str, Any]:
    outcome = Outcome(
        attack=name,
        discloses=Discloses(discloses),
        main=Arm(hits=hits, trials=tried),
        baseline=Arm(hits=round(baseline * 10**6), trials=10**6),
        claims=tried,
        knows=("zip", "birth", "sex"),
    )
    return attack_to_dict(outcome) | {"baseline": baseline, **more}


def bars(*triples: tuple[str, float | None, float]) -> tuple[Bar, ...]:
    return tuple(Bar(label=label, before=before, after=after) for label, before, after in triples)


LINKAGE = "Somebody holds a public file with names and looks for each person's record by the columns both files share."
DECADES = [0.01, 0.03, 0.09, 0.13, 0.16, 0.17, 0.15, 0.12, 0.09, 0.05]
DIAGNOSES = {"Hypertension": 0.19, "Pregnancy and birth": 0.13, "Diabetes": 0.12, "Fracture": 0.1, "Asthma": 0.09}
DIAGNOSES |= {"Pneumonia": 0.08, "Depression": 0.08, "Heart attack": 0.07, "Stroke": 0.06, "Breast cancer": 0.04}
DIAGNOSES |= {"HIV": 0.02, "(other values)": 0.02}


def columns() -> tuple[ColumnPicture, ...]:
    zips = bars(*((f"02{n}**", 0.07 + 0.016 * (n % 5), 0.072 + 0.0155 * (n % 5)) for n in range(10)))
    births = bars(*((f"{1920 + 10 * i}s", share, share * (1.02 if i > 2 else 0.8)) for i, share in enumerate(DECADES)))
    sick = bars(*((name, share, share * 1.01 if share > 0.03 else share * 0.7) for name, share in DIAGNOSES.items()))
    return (
        ColumnPicture(
            column="zip", role="quasi", kind="category", bars=zips, note="Shown at level 2 of the column's hierarchy."
        ),
        ColumnPicture(
            column="birth", role="quasi", kind="date", bars=births, note="Shown at level 3 of the column's hierarchy."
        ),
        ColumnPicture(column="sex", role="quasi", kind="category", bars=bars(("F", 0.531, 0.532), ("M", 0.469, 0.468))),
        ColumnPicture(column="diagnosis", role="sensitive", kind="category", bars=sick),
    )


def histogram(*rows: int) -> list[dict[str, int]]:
    edges = [1, 2, 3, 5, 10, 20, 50, 100, 1000]
    return [
        {"low": low, "high": above - 1, "classes": max(1, count // low), "rows": count}
        for low, above, count in zip(edges, edges[1:], rows, strict=False)
        if count
    ]


def measures() -> tuple[dict[str, Any], ...]:
    marginals = {"zip": 0.012, "birth": 0.031, "sex": 0.001, "diagnosis": 0.014}
    names = list(marginals)
    pairs = {
        f"{a} × {b}": round(0.6 * (marginals[a] + marginals[b]) + 0.025 * (i + j), 4)
        for i, a in enumerate(names)
        for j, b in enumerate(names)
        if i < j
    }
    sizes = {"histogram": histogram(0, 0, 0, 1403, 3871, 6127, 4944, 2896), "suppressed": 0, "classes": 811}
    sizes |= {"histogram_before": histogram(17391, 2020, 431, 158), "smallest_before": 1, "classes_before": 18517}
    return (
        {"measure": "class-sizes", "value": 5.0, "columns": {}, "low": None, "high": None, "detail": sizes},
        {"measure": "uniqueness", "value": 0.0, "columns": {}, "low": None, "high": None}
        | {"detail": {"before": 0.86955, "unique_before": 17391}},
        {
            "measure": "prosecutor",
            "value": 0.0421,
            "columns": {},
            "low": None,
            "high": None,
            "detail": {"before": 0.9263},
        },
        {"measure": "ncp", "value": 0.2417, "low": None, "high": None}
        | {"columns": {"zip": 0.31, "birth": 0.414, "sex": 0.0}},
        {"measure": "marginals", "value": 0.0145, "columns": marginals, "low": None, "high": None},
        {"measure": "pairs", "value": 0.061, "columns": pairs, "low": None, "high": None},
    )


def sample_account(**changes: Any) -> ReportData:
    """Risk 0.87 before, 0.02 after. ``changes`` replace fields."""
    quasi = {"zip": {"mask": {"side": "right"}}, "birth": {"dates": {"units": ["month", "year", "decade"]}}}
    roles: dict[str, Any] = {n: {"role": "quasi", "hierarchy": h} for n, h in quasi.items()}
    roles = {"name": {"role": "identifier"}, **roles, "sex": {"role": "quasi"}, "diagnosis": {"role": "sensitive"}}
    public = {"sfumato": 1, "columns": roles, "models": [{"k-anonymity": {"k": 5}}]}
    public["steps"] = [
        {"remove-identifiers": {}},
        {"generalize": {"search": "optimal", "suppression": 0.05, "metric": "loss"}},
    ]
    own = {**public, "data": "hospital.csv", "seed": 718281, "attacks": [{"linkage": {"auxiliary": "voters.csv"}}]}
    manifest: dict[str, Any] = {
        "sfumato": "0.1.0",
        "rows": 19241,
        "columns": {name: column for name, column in roles.items() if name != "name"},
        "models": [{"k-anonymity": {"k": 5}}],
        "steps": [
            {"step": "remove-identifiers", "columns": ["name"]},
            {"step": "generalize", "search": "optimal", "suppression": 0.05, "metric": "loss"}
            | {"levels": {"zip": 2, "birth": 3, "sex": 0}, "optimal": True},
        ],
        "verdicts": [{"model": "k-anonymity", "state": "holds", "worst": 5, "wanted": 5, "failing": 0, "reason": ""}],
    }
    fields: dict[str, Any] = {
        "title": "Hospital discharges, Massachusetts (made up)",
        "created": "2026-11-15T10:02:11+00:00",
        "versions": {
            "sfumato": "0.1.0",
            "python": "3.11.9",
            "polars": "2.1.0",
            "numpy": "2.4.1",
        },
        "manifest": manifest,
        "files": {
            "data.csv": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "release.json": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
        },
        "recipe_public": public,
        "recipe": own,
        "original_rows": 20000,
        "original_columns": ("name", "zip", "birth", "sex", "diagnosis"),
        "outcomes": ({"step": "remove-identifiers"}, {"step": "generalize", "suppressed": 759, "score": 0.241932}),
        "attacks_before": (
            attack("linkage", "identity", 7046, 8093, 0.00005, threat=LINKAGE),
            attack("linkage", "attribute", 7101, 8093, 0.19, threat=LINKAGE, secret="diagnosis"),
        ),
        "attacks": (
            attack("linkage", "identity", 162, 8093, 0.00005, threat=LINKAGE),
            attack("linkage", "attribute", 1861, 8093, 0.19, threat=LINKAGE, secret="diagnosis"),
        ),
        "measures": measures(),
        "columns": columns(),
        "limits": (
            {"limit": "risk", "wanted": 0.09, "value": 0.0233, "met": True, "attack": "linkage"},
            {"limit": "attribute", "wanted": 0.1, "value": 0.0604, "met": True, "attack": "linkage"},
        ),
        "riskiest": (4182, 917, 15320, 6604, 11877, 233, 19046, 8125),
    }
    return ReportData(**{**fields, **changes})
