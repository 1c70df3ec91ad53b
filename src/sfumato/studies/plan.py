"""Study files: a recipe, and a grid of candidate masking steps.

A study file is a recipe with a ``study`` key. ``{try: [...]}`` lists values; every combination is a candidate::

    study:
      candidates:
        - rank-swap: {p: {try: [2, 5, 10]}, variant: {try: [classic, p-buckets]}}
        - microaggregate: {k: {try: [3, 5, 10]}}
        - [{top-bottom-code: {top_percent: 2}}, {noise: {variance_ratio: 0.1}}]
      seeds: 3
      utility: [correlations, marginals]
      seconds: 60
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from sfumato.attacks import Attack
from sfumato.data.yaml_documents import YamlDocument, document_in, document_of, problems_of
from sfumato.errors import InvalidRecipe, Problem, SfumatoError
from sfumato.field_docs import DocumentedModel
from sfumato.masking.base import Step
from sfumato.measures import About, Measure
from sfumato.recipe import Recipe
from sfumato.recipe.validate import recipe_from_document
from sfumato.registry import registry
from sfumato.wording import did_you_mean

_MAX_RUNS = 10_000
_Seconds = Annotated[float, Field(gt=0)] | None


def _listed(value: object) -> object:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError("must be a list of steps")
    return value


class StudySection(DocumentedModel):
    """The grid of candidates, and how they are compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    candidates: Annotated[
        tuple[Annotated[object, WithJsonSchema({"type": ["string", "object", "array"]})], ...], BeforeValidator(_listed)
    ]
    """Steps, or lists of steps that run in order. Every combination of values under `try` is a candidate."""
    seeds: (
        Annotated[int, Field(ge=1, le=1000)] | Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
    ) = 1
    """How many seeds each candidate runs under, or the seeds."""
    risk: str | None = None
    """The attack or disclosure measure on the risk axis. Default: the largest risk of all attacks on identity."""
    utility: str | Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """The measures on the utility axes, one map each; recommendations use the first. Default: the recipe's first."""
    targets: Annotated[int, Field(ge=1)] = 2000
    """Targets per attack."""
    seconds: _Seconds = None
    """Time limit of one run (a candidate under one seed)."""
    total: _Seconds = None
    """Time limit of the whole study, in seconds."""


class StudyKeys(DocumentedModel):
    """The key that makes a recipe a study."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    study: StudySection
    """The grid of candidates; for `sfumato study` only."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Masking steps that are compared with those of other candidates, under a unique name."""

    name: str
    steps: tuple[Step, ...]

    def to_dict(self) -> list[dict[str, object]]:
        return [{step.part_name(): step.to_dict()} for step in self.steps]


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """Recipe, candidates and seeds of a study, and the two axes of its risk-utility map."""

    recipe: Recipe
    """The recipe that all candidates share. Its steps run before those of the candidate."""
    candidates: tuple[Candidate, ...]
    seeds: tuple[int, ...] = (1,)
    risk: str | None = None
    """The attack or disclosure measure on the risk axis; if None, the largest risk of all attacks on identity."""
    utilities: tuple[str, ...] = ("marginals",)
    """The measures on the utility axes, one map each; recommendations use the first."""
    n_targets: int = 2000
    """The number of targets per attack: ``targets`` in a study file."""
    seconds: float | None = None
    """Time limit of one run (a candidate under one seed); none if None."""
    total: float | None = None
    """Time limit of the whole study in seconds; none if None."""

    @property
    def utility(self) -> str:
        """The measure that recommendations use."""
        return self.utilities[0]

    def recipe_of(self, candidate: Candidate, seed: int | None = None) -> Recipe:
        """The complete recipe of a candidate."""
        steps = (*self.recipe.steps, *candidate.steps)
        return replace(self.recipe, steps=steps, seed=seed if seed is not None else self.seeds[0])

    @classmethod
    def load(cls, path: str | Path) -> StudyPlan:
        """Read and validate a study file. Problems are reported with their lines."""
        document = document_in(path, kind="study", fix="A study is a recipe with a `study:` key.")
        return cls._from_document(document, Path(path).parent)

    @classmethod
    def parse(
        cls, document: str | Mapping[str, object], *, base: Path | None = None, source: str = "study"
    ) -> StudyPlan:
        """A plan from YAML text or from plain data."""
        return cls._from_document(document_of(document, source=source), base)

    @classmethod
    def _from_document(cls, document: YamlDocument, base: Path | None) -> StudyPlan:
        return _plan(recipe_from_document(document, base=base, other_keys=("study",)), document)


def _plan(recipe: Recipe, document: YamlDocument) -> StudyPlan:
    problems: list[Problem] = []

    def add(path: tuple[str | int, ...], message: str) -> None:
        problems.append(document.problem(path, message))

    try:
        section = StudyKeys.model_validate({"study": document.value.get("study") or {}}).study
    except ValidationError as failure:
        raise InvalidRecipe(problems_of(document, StudyKeys, failure), source=document.source) from None
    candidates: list[tuple[str, Candidate]] = []
    for number, entry in enumerate(section.candidates):
        try:
            candidates.extend(_expand(entry))
        except (SfumatoError, ValueError) as refusal:
            add(("study", "candidates", number), str(refusal))
    start = 1 if recipe.seed is None else recipe.seed
    seeds = tuple(range(start, start + section.seeds)) if isinstance(section.seeds, int) else section.seeds
    recipe, utilities = _with_utilities(recipe, section.utility, add)
    recipe, risk = _with_risk(recipe, section.risk, add)
    if len(candidates) * len(seeds) > _MAX_RUNS:
        add(("study",), f"has {len(candidates) * len(seeds)} runs; at most {_MAX_RUNS} are allowed")
    if problems:
        raise InvalidRecipe(problems, source=document.source)
    return StudyPlan(
        recipe=recipe,
        candidates=_named(candidates),
        seeds=seeds,
        risk=risk,
        utilities=utilities,
        n_targets=section.targets,
        seconds=section.seconds,
        total=section.total,
    )


def _with_utilities(recipe: Recipe, requested: object, add: object) -> tuple[Recipe, tuple[str, ...]]:
    """The recipe with all requested utility measures, and their names."""
    names: list[str] = []
    for name in requested if isinstance(requested, tuple) else [requested]:
        recipe, used = _with_utility(recipe, name, add)
        names += [used] if used not in names else []
    return recipe, tuple(names)


def _with_utility(recipe: Recipe, requested: object, add: Any) -> tuple[Recipe, str]:
    """The recipe with a utility measure: the one requested, else the recipe's first, else ``marginals``."""
    available = [m.part_name() for m in recipe.measures if m.about is About.UTILITY]
    if requested is None:
        requested = available[0] if available else "marginals"
    if requested in available:
        return recipe, str(requested)
    try:
        part = registry("measure").get(str(requested)).build()
    except SfumatoError as refusal:
        add(("study", "utility"), str(refusal))
        return recipe, "marginals"
    assert isinstance(part, Measure)
    if part.about is not About.UTILITY:
        add(("study", "utility"), f"`{requested}` measures disclosure, not utility")
    return replace(recipe, measures=(*recipe.measures, part)), str(requested)


def _with_risk(recipe: Recipe, requested: object, add: Any) -> tuple[Recipe, str | None]:
    """The recipe with the attack or measure of the risk axis."""
    if requested is None:
        return recipe, None
    name = str(requested)
    if name in {a.part_name() for a in recipe.attacks} | {m.part_name() for m in recipe.measures}:
        return recipe, name
    for kind in ("attack", "measure"):
        if name in registry(kind):
            try:
                part = registry(kind).get(name).build()
            except SfumatoError as refusal:
                add(("study", "risk"), f"{refusal} List it with its parameters under `{kind}s`.")
                return recipe, None
            if isinstance(part, Attack):
                return replace(recipe, attacks=(*recipe.attacks, part)), name
            assert isinstance(part, Measure)
            return replace(recipe, measures=(*recipe.measures, part)), name
    add(("study", "risk"), f"there is no attack or measure `{name}`. {did_you_mean(name, registry('attack').names())}")
    return recipe, None


def _expand(entry: object) -> list[tuple[str, Candidate]]:
    """All combinations of the values in one entry (a step, or a list of steps that run in order).

    Each comes with a full name, which is used if the short name is not unique.
    """
    steps = entry if isinstance(entry, list) else [entry]
    options: list[list[tuple[str, object, str, str]]] = []
    for step in steps:
        if isinstance(step, str):
            step = {step: None}
        if not isinstance(step, Mapping) or len(step) != 1:
            raise ValueError("a candidate is a step such as {rank-swap: {p: {try: [2, 5]}}}, or a list of steps")
        [(name, setting)] = step.items()
        options.append([(str(name), value, *texts) for value, *texts in _combinations(str(name), setting)])
    candidates = []
    for chosen in product(*options):
        parts = []
        for name, setting, _, _ in chosen:
            part = registry("method").get(name).build(setting)
            assert isinstance(part, Step)
            parts.append(part)
        short, full = (" + ".join(f"{names[0]} {names[at]}".strip() for names in chosen) for at in (2, 3))
        candidates.append((full, Candidate(name=short, steps=tuple(parts))))
    return candidates


def _combinations(name: str, setting: object) -> list[tuple[Any, str, str]]:
    """All settings of a step, each with a short and a full description.

    The short one leaves out lists and mappings that do not vary, such as the columns to mask.
    """
    main = registry("method").get(name).main
    if _is_try(setting) and main is not None:
        setting = {main: setting}
    if not isinstance(setting, Mapping):
        text = "" if setting is None else _short(setting)
        return [(setting, text, text)]
    varied = {key: value["try"] for key, value in setting.items() if _is_try(value)}
    fixed = {key: value for key, value in setting.items() if key not in varied}
    settings = []
    for values in product(*varied.values()):
        tried = dict(zip(varied, values, strict=True))
        plain = {key: value for key, value in fixed.items() if not isinstance(value, list | Mapping)}
        short, full = (", ".join(f"{k}={_short(v)}" for k, v in (known | tried).items()) for known in (plain, fixed))
        settings.append(({**fixed, **tried}, short, full))
    return settings


def _is_try(value: object) -> bool:
    if isinstance(value, Mapping) and "try" in value:
        if len(value) != 1 or not isinstance(value["try"], list) or not value["try"]:
            raise ValueError("write values to try as {try: [value, value, ...]}")
        return True
    return False


def _short(value: object) -> str:
    text = f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _named(candidates: list[tuple[str, Candidate]]) -> tuple[Candidate, ...]:
    """Candidates with unique names: the short name, the full name, or a number after it."""
    short = Counter(candidate.name for _, candidate in candidates)
    unnumbered = [replace(c, name=full) if short[c.name] > 1 else c for full, c in candidates]
    counts: dict[str, int] = {}
    named = []
    for candidate in unnumbered:
        count = counts[candidate.name] = counts.get(candidate.name, 0) + 1
        named.append(candidate if count == 1 else replace(candidate, name=f"{candidate.name} ({count})"))
    return tuple(named)
