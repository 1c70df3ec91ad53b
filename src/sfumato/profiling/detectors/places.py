"""Detectors of places: postal codes, addresses, place names, coordinates."""

from __future__ import annotations

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.facts import Facts
from sfumato.profiling.detectors.finding import Detector, Finding
from sfumato.profiling.detectors.name_patterns import Clue
from sfumato.profiling.words import word_list

_MASK = {"mask": "right"}
_CODES = frozenset({Kind.CATEGORY, Kind.INTEGER})
_TEXT = frozenset({Kind.CATEGORY})
_UK = r"(?i)[A-Z]{1,2}\d[A-Z\d]?\s?\d[A-Z]{2}"
_OTHER_LETTERED = r"(?i)[A-CEGHJ-NPR-TVXY]\d[A-Z]\s?\d[A-Z]\d|\d{4}\s?[A-Z]{2}"

postal_code = Clue(
    title="a postal code",
    role=Role.QUASI,
    words=(
        *("zip", "zip code", "zipcode", "postal code", "postcode", "post code", "postal", "plz", "postleitzahl"),
        *("codigo postal", "code postal", "cap", "cp", "zip 4", "zip 5"),
    ),
    pattern=rf"\d{{3,6}}|\d{{5}}-?\d{{4}}|[A-Z]{{1,2}}-\d{{4,5}}|{_UK}|{_OTHER_LETTERED}",
    alone=0.95,
    alone_pattern=rf"\d{{5}}-\d{{4}}|{_UK}|{_OTHER_LETTERED}",
    least=10,
    kinds=_CODES,
    hierarchy=_MASK,
    hipaa="B",
    register=True,
)


def five_digits(facts: Facts) -> Finding | None:
    """Codes of five digits, some with a leading zero, as postal codes have."""
    if facts.kind is not Kind.CATEGORY or facts.distinct < 20 or facts.spread > 0.9:
        return None
    share, zero = facts.share(r"\d{5}"), facts.share(r"0\d{4}")
    if share < 0.95 or zero == 0:
        return None
    return Finding(
        detector="a postal code",
        role=Role.QUASI,
        reason=f"{share:.0%} of the values are codes of five digits, some with a leading zero, like postal codes",
        confidence=0.6,
        hierarchy=_MASK,
        hipaa="B",
        register=True,
    )


street = Clue(
    title="a street address",
    role=Role.IDENTIFIER,
    words=(
        "address",
        "street",
        "street address",
        "home address",
        "addr",
        "strasse",
        "adresse",
        "direccion",
        "indirizzo",
    ),
    pattern=r"(?i).*\d.*|.*(?:street|st\.|road|ave|lane|str\.|stra(?:ss|ß)e|rue|calle|via)\b.*",
    kinds=_TEXT,
    hipaa="B",
    register=True,
)
town = Clue(
    title="a place smaller than a state",
    role=Role.QUASI,
    words=(
        *(
            "city",
            "town",
            "village",
            "villnum",
            "village number",
            "county",
            "municipality",
            "district",
            "parish",
            "precinct",
            "census tract",
            "tract",
        ),
        *(
            "block group",
            "ward",
            "commune",
            "gemeinde",
            "kreis",
            "stadt",
            "ort",
            "ciudad",
            "municipio",
            "ville",
            "borough",
        ),
        *("neighborhood", "neighbourhood", "locality", "residence", "wohnort", "urbrur", "urban", "rural"),
    ),
    hipaa="B",
    register=True,
)
state = Clue(
    title="a state or region",
    role=Role.QUASI,
    words=("state", "province", "region", "bundesland", "land", "departement", "comunidad", "prefecture", "canton"),
    values=word_list("us_states"),
    alone=0.95,
    least=5,
    most=60,
    register=True,
)
region = Clue(
    title="a state or region",
    role=Role.QUASI,
    words=("province", "region", "bundesland", "departement", "comunidad autonoma", "prefecture", "canton", "kanton"),
    register=True,
)
country = Clue(
    title="a country",
    role=Role.QUASI,
    words=(
        *(
            "country",
            "nationality",
            "citizenship",
            "native country",
            "country of birth",
            "birthplace",
            "place of birth",
        ),
        *("staatsangehorigkeit", "nacionalidad", "nationalite", "pais", "pays"),
    ),
    values=word_list("countries"),
    alone=0.8,
    least=4,
)
latitude_longitude = Clue(
    title="a coordinate",
    role=Role.QUASI,
    words=("latitude", "longitude", "lat", "lon", "lng", "gps", "geo lat", "geo lon"),
    kinds=frozenset({Kind.NUMBER}),
    hierarchy={"intervals": [0.01, 0.1, 1]},
    hipaa="B",
    register=True,
)

DETECTORS: tuple[Detector, ...] = (
    *(postal_code, street, town, state, region, country, latitude_longitude),
    five_digits,
)
