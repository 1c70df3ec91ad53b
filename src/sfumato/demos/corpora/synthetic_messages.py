"""Synthetic messages of patients to a clinic, with what outsiders know about the writers. Nobody of them exists.

Everybody has a name, an age, a town, a profession, an illness and habits of writing. The messages mention them; a file
of profiles has them too; and posts of the same people about other things share only the habits with the messages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.profiling.words import word_list
from sfumato.rng import Rng

_ILLNESSES: dict[str, tuple[str, str]] = {
    "asthma": ("lungs", "the inhaler hardly helps and I wheeze at night"),
    "bronchitis": ("lungs", "I cough all day and the phlegm is thick"),
    "sarcoidosis": ("lungs", "the scan of the chest worries me and I am short of breath"),
    "angina": ("heart", "there is pressure in my chest when I climb stairs"),
    "arrhythmia": ("heart", "my pulse jumps and I feel faint"),
    "heart failure": ("heart", "my ankles swell and I sleep on three pillows"),
    "migraine": ("nerves", "light hurts and half of my head throbs"),
    "epilepsy": ("nerves", "the last seizure came without a warning"),
    "neuropathy": ("nerves", "my feet tingle and feel numb"),
    "gout": ("joints", "my big toe is red and swollen"),
    "arthritis": ("joints", "my fingers are stiff every morning"),
    "lupus": ("joints", "my knees ache and the rash is back"),
}
"""Illness, department, complaint."""
_JOBS = {
    "trade": ("baker", "butcher", "florist", "grocer", "barber"),
    "crafts": ("carpenter", "mason", "roofer", "welder"),
    "offices": ("clerk", "accountant", "notary", "librarian"),
    "outdoors": ("farmer", "beekeeper", "forester", "shepherd"),
    "travel": ("pilot", "courier", "lighthouse keeper", "bus driver"),
}
_TOWNS = {"the north": ("Riverton", "Oakdale", "Northam", "Elmsford"), "the south": ("Marlow", "Fairview", "Sandbach"),
          "the coast": ("Glenbrook", "Saltcoats", "Whitby")}  # fmt: skip
_MESSAGES = (
    "Hello, this is {name}. I have {illness} and {complaint}.",
    "I am a {job} from {town} and {complaint}. Can I come in on {day} March 2024?",
    "As a {age}-year-old {job} I cannot stay at home. {complaint2}.",
    "My {illness} is worse since {day} February 2024. {complaint2}. Please call 415-555-{phone}.",
    "Thank you for the appointment in {town}. The tablets for my {illness} work, but {complaint}.",
)
_POSTS = (
    "The match was dreadful and the referee was blind. We left before the end.",
    "I planted tomatoes and beans. The neighbours laughed, but the soil is good.",
    "What a film! The music was lovely and the ending surprised everybody.",
    "The train was late and the coffee was cold. I wrote to the company about it.",
    "We painted the kitchen green and yellow. It looks better than I thought it would.",
)
_HABITS: tuple[tuple[str, str], ...] = (
    (" and ", " & "), (".", "..."), (" I ", " i "), (", ", " , "), (" is ", "'s "), ("!", "!!"), (".", "!"),
    (" the ", " th "), (" was ", " were "), (" cannot ", " can not "), ("ing ", "in "), (". ", ".  "),
)  # fmt: skip
"""Ways of writing that a person has or has not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PatientMessages:
    """Messages, and the files of outsiders about the people who wrote them."""

    messages: pl.DataFrame
    """``patient``, ``name``, ``department`` and ``message``, several rows per patient."""
    profiles: pl.DataFrame
    """``patient``, ``age``, ``job``, ``town`` and ``illness``."""
    posts: pl.DataFrame
    """``patient`` and ``post``: texts of the same people about other things."""
    taxonomy: pl.DataFrame
    """A term and its labels, from fine to coarse: towns, professions and illnesses."""


def patient_messages(people: int, *, seed: int, each: int = 4) -> PatientMessages:
    """Draw people with ``each`` messages and a few posts.

    >>> drawn = patient_messages(20, seed=1)
    >>> drawn.messages.columns, drawn.messages.height
    (['patient', 'name', 'department', 'message'], 80)
    """
    draw = Rng(seed).child("messages").generator
    given, family = (sorted(word.capitalize() for word in word_list(name)) for name in ("given_names", "surnames"))
    jobs, towns = ([value for group in groups.values() for value in group] for groups in (_JOBS, _TOWNS))
    messages, profiles, posts = [], [], []
    for number in range(people):
        name = f"{_pick(draw, given)} {_pick(draw, family)}"
        illness, job, town = _pick(draw, list(_ILLNESSES)), _pick(draw, jobs), _pick(draw, towns)
        department, complaint = _ILLNESSES[illness]
        age, habits = int(draw.integers(18, 95)), draw.random(len(_HABITS)) < 0.3
        profiles.append((number, age, job, town, illness))
        for text in draw.permutation(_MESSAGES)[:each]:
            filled = str(text).format(
                name=name, illness=illness, job=job, town=town, age=age, complaint=complaint,
                complaint2=complaint[0].upper() + complaint[1:], day=draw.integers(1, 28),
                phone=draw.integers(1000, 9999),
            )  # fmt: skip
            messages.append((number, name, department, _written(filled, habits)))
        posts += [(number, _written(post, habits)) for post in _POSTS]
    terms = [(value, label) for groups in (_JOBS, _TOWNS) for label, group in groups.items() for value in group]
    terms += [(illness, f"an illness of the {department}") for illness, (department, _) in _ILLNESSES.items()]
    return PatientMessages(
        messages=pl.DataFrame(messages, schema=["patient", "name", "department", "message"], orient="row"),
        profiles=pl.DataFrame(profiles, schema=["patient", "age", "job", "town", "illness"], orient="row"),
        posts=pl.DataFrame(posts, schema=["patient", "post"], orient="row"),
        taxonomy=pl.DataFrame([(*term, "*") for term in terms], schema=["term", "label", "all"], orient="row"),
    )


def _pick(draw: np.random.Generator, values: list[str]) -> str:
    return values[int(draw.integers(len(values)))]


def _written(text: str, habits: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    for (usual, own), has in zip(_HABITS, habits, strict=True):
        if has:
            text = text.replace(usual, own)
    return text
