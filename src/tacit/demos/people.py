"""Made-up people: a hospital's table and a voter list that overlap in part. Nobody in them exists."""

from __future__ import annotations

from datetime import date
from functools import cache

import numpy as np
import polars as pl

from tacit.rng import Rng

__all__ = ["hospital", "voters"]

_GIVEN_F = "Ada Alma Anna Beth Carla Clara Daisy Dora Edith Ella Emma Esther Eva Fay Flora Gina Grace Hannah Helen Ida Ines Iris Ivy Jane Joan Judith Julia June Karen Kate Laura Lena Lily Lucy Mabel Mara Maria Martha Mary May Mina Nadia Nell Nina Nora Olga Olive Pam Pearl Petra Rita Rosa Ruth Sara Sonia Stella Susan Tess Vera Viola Wilma Zoe".split()  # noqa: E501
_GIVEN_M = "Aaron Abel Adam Alan Albert Alec Amos Anton Arthur Axel Ben Boris Carl Cecil Clyde Colin Cyrus Dan David Dean Edgar Edwin Eli Emil Eric Ernest Felix Floyd Frank Fred Gabe George Gus Guy Harry Henry Hugh Ira Ivan Jack Jacob James Joel John Karl Ken Leo Leon Louis Luke Mark Max Milo Ned Noah Oscar Otto Paul Peter Ralph Ray Roy Sam Saul Seth Theo Tom Victor Walt Will".split()  # noqa: E501
_FAMILY = "Abbott Acker Alden Amory Archer Atwood Bacon Baker Barlow Barton Bates Beal Bell Benson Bishop Blake Bowen Boyd Brewer Brooks Burke Butler Cabot Calder Carver Chase Clark Coffin Cole Conley Cooper Crane Cross Curtis Dale Dalton Davis Dean Doyle Drake Dunn Eaton Ellis Emery Farrow Fisher Flynn Forbes Foster Fox Frost Gage Garner Gates Gibbs Glover Grant Graves Gray Greene Hale Hall Harlow Hayes Hobbs Holt Howe Hunt Irving Jarvis Jenks Keane Kemp Kerr Kirk Lamb Lane Lowell Lynch Mason Mercer Miles Moody Moore Morse Nash Newell Noble Norris Oakes Odell Otis Page Parker Peck Perry Pierce Pope Porter Pratt Quincy Rand Reed Rhodes Rice Rowe Sears Shaw Snow Stone Swift Thayer Todd Tyler Vance Wade Ward Watts Weld West Wylie Yates York".split()  # noqa: E501

_DIAGNOSES = {
    "Hypertension": 0.21, "Type 2 diabetes": 0.14, "Back pain": 0.12, "Asthma": 0.09, "Pneumonia": 0.08,
    "Fracture": 0.08, "Depression": 0.08, "Coronary heart disease": 0.07, "Breast cancer": 0.04, "Epilepsy": 0.03,
    "Hepatitis C": 0.025, "HIV": 0.02, "Schizophrenia": 0.015,
}  # fmt: skip
_LATEST = date(1996, 12, 31)
_ZIPS = tuple(f"02{number:03d}" for number in (138, 139, 140, 141, 142, 143, 144, 145, 148, 149, 151, 155, 169, 170, 171, 176, 180, 184, 186, 188, 189, 190, 191, 152, 150, 129, 128, 127, 125, 124))  # noqa: E501


@cache
def _population(seed: int, count: int) -> pl.DataFrame:
    """A town: name, ZIP, birth date, sex. ZIPs and ages are as skewed as real ones."""
    draw = Rng(seed).child("population").generator
    shares = draw.dirichlet(np.full(len(_ZIPS), 2.0))
    zips = np.array(_ZIPS)[draw.choice(len(_ZIPS), size=count, p=shares)]
    age = np.clip(np.where(draw.random(count) < 0.82, draw.gamma(4.2, 9.5, count), draw.normal(76, 9, count)), 0.1, 104)
    born = np.datetime64(_LATEST) - (age * 365.2425).astype("timedelta64[D]")
    female = draw.random(count) < 0.47 + 0.10 * (age > 65)
    given_f, given_m = np.array(_GIVEN_F, dtype=object), np.array(_GIVEN_M, dtype=object)
    combos = len(_GIVEN_F) * 26 * len(_FAMILY)
    pick = draw.choice(combos, size=count, replace=False)
    first = np.where(female, given_f[pick % len(given_f)], given_m[pick % len(given_f) % len(given_m)])
    middle = pick // len(given_f) % 26
    last = np.array(_FAMILY, dtype=object)[pick // (len(given_f) * 26)]
    names = [f"{f} {chr(65 + m)}. {s}" for f, m, s in zip(first, middle, last, strict=True)]
    return pl.DataFrame(
        {"name": names, "zip": zips, "birth_date": born, "sex": np.where(female, "F", "M")},
        schema_overrides={"birth_date": pl.Date},
    )


def hospital(seed: int, *, patients: int = 20_000, town: int = 54_000) -> pl.DataFrame:
    """Patients of the town's hospital with their diagnosis; the old are more often in it."""
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
    """The town's voter list: adults, with names; anyone may buy it."""
    population = _population(seed, town)
    adults = population.filter(pl.col("birth_date") <= date(_LATEST.year - 18, _LATEST.month, _LATEST.day))
    draw = Rng(seed).child("voters").generator
    listed = adults.filter(pl.Series(draw.random(adults.height) < share))
    return listed.sample(fraction=1.0, shuffle=True, seed=seed + 1)
