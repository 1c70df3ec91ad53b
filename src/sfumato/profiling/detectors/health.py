"""Detectors of sensitive attributes: health, income, beliefs, offences."""

from __future__ import annotations

from sfumato.profiling.finding import Detector
from sfumato.profiling.name_patterns import Clue
from sfumato.schema import Kind, Role

__all__ = ["DETECTORS"]

_ICD_10 = r"[A-TV-Z]\d[0-9AB](?:\.?[0-9A-TV-Z]{1,4})?"


def _sensitive(title: str, *words: str, **more: object) -> Clue:
    return Clue(title=title, role=Role.SENSITIVE, words=words, **more)  # type: ignore[arg-type]


diagnosis_code = _sensitive(
    "a diagnosis code (ICD-10)",
    *("icd", "icd 10", "icd 10 code", "diagnosis code", "icd code"),
    pattern=_ICD_10,
    alone=0.95,
    least=5,
    kinds=frozenset({Kind.CATEGORY}),
)
diagnosis = _sensitive(
    "a diagnosis",
    *("diagnosis", "diagnoses", "diag", "dx", "disease", "illness", "condition", "disorder", "symptom", "symptoms"),
    *(
        "comorbidity",
        "diagnose",
        "hauptdiagnose",
        "nebendiagnose",
        "nebendiagnosen",
        "diagnostico",
        "diagnosi",
        "krankheit",
        "erkrankung",
        "todesursache",
        "enfermedad",
        "maladie",
        "malattia",
        "ziekte",
        "cause of death",
        "drg",
        "hiv",
        "cancer",
        "tumor",
        "stroke",
    ),
    *("diabetes", "depression", "pregnant", "pregnancy", "disability", "allergy", "infection", "covid"),
)
treatment = _sensitive(
    "a treatment or a test",
    *(
        "treatment",
        "therapy",
        "medication",
        "drug",
        "prescription",
        "procedure",
        "surgery",
        "test result",
        "lab result",
    ),
    *(
        "vaccination",
        "vaccine",
        "blood pressure",
        "cholesterol",
        "glucose",
        "hba 1 c",
        "genotype",
        "mutation",
        "blood type",
    ),
    *(
        "smoker",
        "smoking",
        "alcohol",
        "outcome",
        "behandlung",
        "therapie",
        "medikament",
        "medikation",
        "befund",
        "blutdruck",
    ),
    *("tratamiento", "traitement", "trattamento", "behandeling", "raucher"),
)
money = _sensitive(
    "income or wealth",
    *(
        "income",
        "salary",
        "salary class",
        "wage",
        "wages",
        "earnings",
        "pay",
        "gehalt",
        "einkommen",
        "lohn",
        "ingresos",
    ),
    *(
        "salario",
        "sueldo",
        "revenu",
        "salaire",
        "wealth",
        "savings",
        "debt",
        "debts",
        "assets",
        "balance",
        "loan",
        "mortgage",
        "expend",
    ),
    *(
        "expenditure",
        "capital gain",
        "capital loss",
        "rent",
        "pension",
        "benefits",
        "credit score",
        "limit bal",
        "credit limit",
    ),
    *("default", "default payment", "default payment next month", "bill amt", "pay amt", "charges", "house value"),
    *("price", "amount", "cost", "costs", "turnover", "revenue", "tax", "taxes", "payment", "bonus", "fortune"),
    *("kosten", "preis", "betrag", "umsatz", "vermogen", "vermoegen", "schulden", "kredit", "miete", "rente", "steuer"),
    *(
        "rechnung",
        "coste",
        "costo",
        "precio",
        "importe",
        "deuda",
        "prix",
        "montant",
        "cout",
        "loyer",
        "prezzo",
        "importo",
    ),
    *("inkomen", "salaris", "bedrag", "reddito", "stipendio"),
)
belief = _sensitive(
    "a belief, a membership or an intimate matter",
    *(
        "religion",
        "religious",
        "faith",
        "confession",
        "konfession",
        "politics",
        "party",
        "political party",
        "vote",
        "voted",
    ),
    *("union", "union member", "sexual orientation", "orientation", "sex life", "philosophy", "opinion"),
)
offence = _sensitive(
    "an offence",
    *("crime", "offence", "offense", "conviction", "sentence", "arrest", "arrests", "recidivism", "two year recid"),
)
performance = _sensitive(
    "a grade or a rating",
    *("grade", "grades", "gpa", "exam", "score", "mark", "marks", "rating", "iq", "performance", "evaluation"),
)

DETECTORS: tuple[Detector, ...] = (*(diagnosis_code, diagnosis, treatment, money, belief, offence, performance),)
