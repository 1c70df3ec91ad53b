"""Synthetic reports, messages and letters with known identifiers.

Names, places, formats and sentences share nothing with :mod:`sfumato.demos.corpora.known_notes`, and the words were
chosen without the lists of the rules. The rules were later extended with these letters; :func:`held_out_case_files`
are texts that they were not extended with. Some identifiers are in lower case, in words or without context, as people
write. Nobody in the letters exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import numpy as np

from sfumato.demos.corpora.known_notes import KnownNote
from sfumato.documents.text_findings import TextKind
from sfumato.rng import Rng

__all__ = ["held_out_letters"]

_GIVEN = (
    "Abdul Adunni Alice Anselm Astrid Babak Benedikt Birgit Carmen Cedric Charlotte Chiamaka David Delphine Diego "
    "Edward Eun-ji Farah Felicity Feng Francesca George Goran Gwen Halima Hector Henrik Hoa Ingrid Isaac "
    "Jamila Jane Jerzy Jin John Jorge Kavita Kenji Kirsten Kofi Lakshmi Lidia Lucy Maeve "
    "Malik Margaret Matteo Mona Moses "
    "Naomi Noor Omar Ottilie Paul Pilar Rania Ravi Rhys Samuel Selin Shanice Simon Svetlana Tamar Tomasz Ulrike "
    "Veronica Victor Winston Yuki Zara"
)
_FAMILY = (
    "Achterberg Afolabi Amari Baptiste Barzani Bell Bergmann Boateng Brown Cardoso Chen Cohen Cooper Devlin Diallo "
    "Ekstrom Farouk Ferrari Fontaine Garcia Ghosh Green Gruber Halvorsen Hassan Hill Hoxha Iyer Jankowski Kamau Khan "
    "King Kovacs Larsen Lee Marchetti Martin Mensah Miyazaki Mukherjee Nielsen Oduya Osei Park Popescu Quispe Rahman "
    "Robinson Salazar Santos Shah Silva Tanaka Thompson Torres Usman Valdez Vogel Weber White Wood Xu Young "
    "Zhou"
)
_TOWNS = ("Antwerp", "Bath", "Cork", "Drogheda", "El Paso", "Freiburg", "Grimsby", "Hull", "Izmir", "Jaipur", "Kisumu",
          "Lahore", "Malmo", "Newport", "Oaxaca", "Penrith", "Reading", "Salem", "Tampere", "Uppsala", "Windhoek",
          "Ypsilanti")  # fmt: skip
_ROADS = ("Bridge Road", "Castle Hill", "The Green", "Linden Allee", "Orchard Drive", "Quay Street", "West Parade")
_JOBS = ("archivist", "barber", "crane operator", "florist", "goldsmith", "midwife", "organist", "shepherd", "surveyor")
_TEMPLATES = (
    "INCIDENT REPORT {date}\nThe driver, {name}, stated that the other car came from {town}. Licence {number}. {last} "
    "was not hurt; a passenger ({age}) was taken to hospital by {other}.",
    "hi, its {lower} here, can you ring me on {phone}? im in {lowtown} till {date}",
    "Term report: {first} has settled in well. {first}'s essay about the move to {town} was excellent. (Class teacher: "
    "{title} {otherlast})",
    "Statement of {name}\nI am a {job} and I live at {house} {road}, {town}. I am {ageword} years old. On {date} my "
    "neighbour {other} came to my door.",
    "{last} v {otherlast}: the applicant, born on {date} in {town}, relies on the letter of {other}.",
    "Intake {date}: {job}, {age}, lives in {town} with partner {otherfirst}. Ref {number}. {mail}",
    "I still think about {otherfirst} every day. {otherfirst} and I met in {town} when I worked as a {job}.",
    "Thx to @{handle} and {name} for the tour of {town}! Photos: https://{handle}.example/p/{age}",
    "Discharge letter\nPt: {name} DOB: {date} ID {number}\nThis {age}yo {job} presented with pain. f/u with {title} "
    "{otherlast} in {town}.",
    "Complaint no. {number}. {title} {last} from {town} called ({phone}) on {date}. {last} wants a refund.",
    "My grandmother {otherfirst} turned {age} in {town}; {name} baked the cake.",
    "Reference for {name}: {first} was a {job} with us in {town} until {date}. Call {other} on {phone}.",
)
_SLOTS: dict[str, TextKind] = {
    **dict.fromkeys(("name", "lower", "first", "last", "other", "otherfirst", "otherlast"), "name"),
    "date": "date", "town": "place", "lowtown": "place", "road": "place", "number": "id",
    "phone": "contact", "mail": "contact", "handle": "contact", "age": "age", "ageword": "age",
}  # fmt: skip
_DATES = ("%d %b %y", "%Y/%m/%d", "%b. %d, %Y", "%d.%m.", "%m/%d", "%B %Y", "%-d %B %Y", "%A, %B %-d", "%Y%m%d")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty")


def held_out_letters(count: int, *, seed: int) -> list[KnownNote]:
    """Draw letters.

    >>> letter = held_out_letters(1, seed=1)[0]
    >>> all(text in letter.text for _, text in letter.known)
    True
    """
    draw = Rng(seed).child("letters").generator
    return [_letter(draw) for _ in range(count)]


def _letter(draw: np.random.Generator) -> KnownNote:
    def pick(values: Sequence[str]) -> str:
        return values[int(draw.integers(len(values)))]

    first, last, otherfirst, otherlast = (pick(names.split()) for names in (_GIVEN, _FAMILY) * 2)
    day = date(1945, 1, 1) + timedelta(days=int(draw.integers(0, 29_000)))
    digits, town = "".join(map(str, draw.integers(0, 10, 12))), pick(_TOWNS)
    numbers = (
        digits[:5],
        f"{digits[:2]}-{digits[2:7]}",
        f"AB{digits[:6]}C",
        f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}",
    )
    phones = (
        f"0{digits[:4]} {digits[4:10]}",
        f"+1 {digits[:3]} 555 {digits[3:7]}",
        f"{digits[:3]} {digits[3:6]}",
        digits[:9],
    )
    values = {
        "first": first, "last": last, "name": f"{first} {last}", "lower": first.lower(), "otherfirst": otherfirst,
        "otherlast": otherlast, "other": f"{otherfirst} {otherlast}", "title": pick(("Mr", "Mrs", "Ms", "Dr", "Miss")),
        "town": town, "lowtown": town.lower(), "job": pick(_JOBS), "house": str(draw.integers(1, 200)),
        "road": pick(_ROADS), "age": str(draw.integers(3, 99)),
        "ageword": f"{pick(_TENS)}-{pick(('one', 'four', 'nine'))}",
        "date": day.strftime(pick(_DATES)), "number": pick(numbers), "phone": pick(phones),
        "mail": f"{otherfirst.lower()}@{last.lower()}.example", "handle": f"{first.lower()}_{digits[:2]}",
    }  # fmt: skip
    template = pick(_TEMPLATES)
    known = [(kind, values[slot]) for slot, kind in _SLOTS.items() if f"{{{slot}}}" in template]
    return KnownNote(text=template.format(**values), known=tuple(known))
