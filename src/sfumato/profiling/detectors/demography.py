"""Detectors of demographic attributes: sex, origin, family, education, occupation."""

from __future__ import annotations

from sfumato.dataset import Kind, Role
from sfumato.profiling.detectors.finding import Detector
from sfumato.profiling.detectors.name_patterns import Clue

_CODED = frozenset({Kind.CATEGORY, Kind.INTEGER, Kind.BOOLEAN, Kind.NUMBER})
_SEX = "male female m f w d x man woman men women diverse other unknown männlich weiblich hombre mujer h v homme femme"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split("|"))


sex = Clue(
    title="sex",
    role=Role.QUASI,
    words=("sex", "gender", "geschlecht", "sexo", "sexe", "sesso", "geslacht", "female", "male"),
    values=frozenset(_SEX.split()),
    alone=0.98,
    least=2,
    most=4,
    kinds=_CODED,
    register=True,
)
race = Clue(
    title="race or ethnic origin",
    role=Role.QUASI,
    words=(
        *("race", "ethnicity", "ethnic", "ethn", "etni", "ethnic group", "tribe", "caste", "skin color"),
        *("black", "white", "asian", "hispanic", "hisp", "latino", "latina", "nonwhite", "non white", "minority"),
        *("african american", "native american", "indigenous", "aboriginal", "othrace", "other race", "roma"),
    ),
    values=_words(
        "white|black|asian|hispanic|latino|asian pac islander|amer indian eskimo|african american|native american|"
        "caucasian|pacific islander|black or african american|american indian or alaska native|other|two or more races|"
        "native hawaiian|unknown|mixed"
    ),
    alone=0.9,
    least=3,
    most=15,
    remark="often known to outsiders and a special category of data: make it sensitive if it must stay secret",
)
marital_status = Clue(
    title="marital status",
    role=Role.QUASI,
    words=(
        *(
            "marital",
            "marital status",
            "marstat",
            "civil status",
            "married",
            "familienstand",
            "estado civil",
            "hhcivil",
        ),
        *("marriage", "spouse", "maried", "marr", "divorced", "separated", "widowed", "widow", "never married", "mar"),
        *("single", "cohab", "cohabiting", "cohabitation", "partnered", "verheiratet", "ledig", "casado"),
    ),
    values=_words(
        "married|single|divorced|widowed|separated|never married|married civ spouse|married af spouse|"
        "married spouse absent|widow|widower|registered partnership|cohabiting|unmarried|ledig|verheiratet|geschieden|"
        "verwitwet"
    ),
    alone=0.9,
    least=3,
    most=12,
)
education = Clue(
    title="education",
    role=Role.QUASI,
    words=(
        "education",
        "educ",
        "education num",
        "degree",
        "schooling",
        "edu",
        "years of education",
        "years of schooling",
        "edlevel",
        "nodegree",
        "college",
        "graduate",
        "qualification",
        "bildung",
        "schulabschluss",
        "bildungsabschluss",
        "educacion",
        "diploma",
    ),
)
occupation = Clue(
    title="occupation",
    role=Role.QUASI,
    words=(
        *(
            "occupation",
            "job",
            "job title",
            "profession",
            "workclass",
            "work class",
            "employer",
            "industry",
            "employment",
            "employed",
            "unemployed",
            "self employed",
            "blue collar",
            "bluecol",
            "work experience",
            "experience",
            "exper",
            "job tenure",
        ),
        *(
            "employment status",
            "beruf",
            "ocupacion",
            "profesion",
            "isco",
            "soc code",
            "occup",
            "labor force",
            "position",
        ),
    ),
)
family = Clue(
    title="family and household",
    role=Role.QUASI,
    words=(
        *(
            "children",
            "num children",
            "nchild",
            "family size",
            "familysize",
            "household size",
            "hhsize",
            "relationship",
        ),
        *("relat", "dependents", "siblings", "number of children", "kids", "child", "sons", "daughters", "family"),
    ),
    bands=True,
)
language = Clue(
    title="language",
    role=Role.QUASI,
    words=("language", "mother tongue", "native language", "muttersprache", "sprache", "idioma", "langue", "lingua"),
)
body = Clue(
    title="a visible feature of the body",
    role=Role.QUASI,
    words=(
        *("ht", "ht cm", "wt kg", "waist", "bodyweight", "birth weight", "birthweight", "handedness", "left handed"),
        *(
            "height",
            "body height",
            "hair color",
            "eye color",
            "shoe size",
            "body weight",
            "bmi",
            "weight kg",
            "weight lb",
        ),
        *("height cm", "koerpergroesse", "korpergrosse", "groesse", "grosse", "koerpergewicht", "korpergewicht"),
        *(
            "gewicht kg",
            "augenfarbe",
            "haarfarbe",
            "schuhgroesse",
            "altura",
            "estatura",
            "peso kg",
            "taille",
            "poids kg",
        ),
        *("altezza", "lengte", "lichaamslengte"),
    ),
    bands=True,
)

migration = Clue(
    title="migration",
    role=Role.QUASI,
    words=("immigrant", "migrant", "foreign", "foreigner", "foreign born", "native", "refugee", "auslander"),
)
military = Clue(
    title="military service",
    role=Role.QUASI,
    words=("veteran", "vet", "military", "military service", "armed forces"),
)
duration = Clue(
    title="a duration",
    role=Role.QUASI,
    words=("days", "weeks", "months", "duration", "follow up", "followup", "length of stay", "los", "dauer"),
    kinds=frozenset({Kind.INTEGER, Kind.NUMBER}),
    bands=True,
    remark="known to those around the person; if nobody outside knows it, make it sensitive",
)
site = Clue(
    title="a site or a stratum",
    role=Role.QUASI,
    words=("site", "study site", "center", "centre", "clinic", "strat", "stratum", "strata"),
    kinds=_CODED,
)

DETECTORS: tuple[Detector, ...] = (
    *(sex, race, marital_status, education, occupation),
    *(family, language, body, migration, military, duration, site),
)
