"""Synthetic people: a hospital table and a voter list that overlap in part."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.rng import Rng

_DIAGNOSES = {
    "Hypertension": 0.21, "Type 2 diabetes": 0.14, "Back pain": 0.12, "Asthma": 0.09, "Pneumonia": 0.08,
    "Fracture": 0.08, "Depression": 0.08, "Coronary heart disease": 0.07, "Breast cancer": 0.04, "Epilepsy": 0.03,
    "Hepatitis C": 0.025, "HIV": 0.02, "Schizophrenia": 0.015,
}  # fmt: skip
_LATEST = date(1996, 12, 31)
_ZIPS = tuple(f"021{number:02d}" for number in (*range(24, 30), *range(38, 56), *range(68, 74)))


def _names() -> tuple[list[str], list[str], list[str]]:
    """Lists of common given names (women, men) and family names."""
    lists = json.loads(Path(__file__).with_name("names.json").read_text(encoding="utf-8"))
    return lists["women"], lists["men"], lists["families"]


@cache
def _population(seed: int, count: int) -> pl.DataFrame:
    """Population of a town: name, ZIP, birth date, sex. ZIPs and ages have skewed distributions."""
    draw = Rng(seed).child("population").generator
    shares = draw.dirichlet(np.full(len(_ZIPS), 2.0))
    zips = np.array(_ZIPS)[draw.choice(len(_ZIPS), size=count, p=shares)]
    age = np.where(draw.random(count) < 0.82, draw.gamma(4.2, 9.5, count), draw.normal(76, 9, count))
    age = np.where((age < 0.1) | (age > 104), draw.uniform(0.1, 90, count), age)
    born = np.datetime64(_LATEST) - (age * 365.2425).astype("timedelta64[D]")
    female = draw.random(count) < 0.47 + 0.10 * (age > 65)
    given_f, given_m, family = (np.array(names, dtype=object) for names in _names())
    combos = len(given_f) * 26 * len(family)
    pick = draw.choice(combos, size=count, replace=False)
    first = np.where(female, given_f[pick % len(given_f)], given_m[pick % len(given_f) % len(given_m)])
    middle = pick // len(given_f) % 26
    last = family[pick // (len(given_f) * 26)]
    names = [f"{f} {chr(65 + m)}. {s}" for f, m, s in zip(first, middle, last, strict=True)]
    return pl.DataFrame(
        {"name": names, "zip": zips, "birth_date": born, "sex": np.where(female, "F", "M")},
        schema_overrides={"birth_date": pl.Date},
    )


def hospital(seed: int, *, patients: int = 20_000, town: int = 54_000) -> pl.DataFrame:
    """Patients of the town's hospital with their diagnosis. Older people are patients more often."""
    population = _population(seed, town)
    draw = Rng(seed).child("hospital").generator
    born = population["birth_date"].to_numpy()
    age = (np.datetime64(_LATEST) - born).astype("timedelta64[D]").astype(float) / 365.2425
    weight = 1 + (age / 40) ** 2
    rows = np.sort(draw.choice(town, size=patients, replace=False, p=weight / weight.sum()))
    names, base = list(_DIAGNOSES), np.array(list(_DIAGNOSES.values()))
    old = (age[rows] > 60).astype(float)
    tilt = np.ones((patients, len(names)))
    for name, factor in {"Hypertension": 1.8, "Coronary heart disease": 3.0, "Asthma": 0.4, "Depression": 0.6}.items():
        tilt[:, names.index(name)] = np.where(old, factor, 1)
    tilt[population["sex"].to_numpy()[rows] == "M", names.index("Breast cancer")] = 0.01
    chance = np.cumsum(base * tilt, axis=1)
    diagnosis = (draw.random(patients)[:, None] * chance[:, -1:] > chance).sum(axis=1)
    admitted = np.datetime64("1996-01-01") + draw.integers(0, 366, patients).astype("timedelta64[D]")
    return (
        population[rows]
        .with_columns(
            pl.Series("admitted", admitted).cast(pl.Date),
            pl.Series("diagnosis", np.array(names, dtype=object)[diagnosis], dtype=pl.String),
        )
        .sample(fraction=1.0, shuffle=True, seed=seed)
    )


def voters(seed: int, *, town: int = 54_000, share: float = 0.6) -> pl.DataFrame:
    """The town's public voter list: a sample of the adults, with names."""
    population = _population(seed, town)
    adults = population.filter(pl.col("birth_date") <= date(_LATEST.year - 18, _LATEST.month, _LATEST.day))
    draw = Rng(seed).child("voters").generator
    listed = adults.filter(pl.Series(draw.random(adults.height) < share))
    return listed.sample(fraction=1.0, shuffle=True, seed=seed + 1)
