"""Rehearse a recipe on a table before it is run: does it meet its own limit on risk, and with which k?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.attacks import AttackScenario, Outcome
from sfumato.attacks.record_linkage.any_columns import AnyColumns
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.errors import SfumatoError, Unmet
from sfumato.evaluation import make_release
from sfumato.evaluation.column_attribution import column_attribution
from sfumato.evaluation.limits import judge_limits, judged_risk
from sfumato.evaluation.run import attack_to_dict, run_attacks
from sfumato.evaluation.ways_out import WayOut, ways_out
from sfumato.masking.base import Step
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.progress import SILENT
from sfumato.recipe import Recipe
from sfumato.rng import Rng

_MOST_CELLS = 1_000_000
_EVALUATIONS, _SECONDS = 20_000, 3.0
"""Work and time of a heuristic search for each k. A run searches longer, so it may find other levels."""
_MARGIN = 0.9
"""Share of the limit that the rehearsed risk may reach, because a run may find other levels."""
_LARGEST_CLASS = 0.1
"""Largest k that is tried, as a share of the rows."""


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What attackers who know all released columns find, by k, and what remains if no k meets the limit."""

    wanted: float
    tried: Mapping[int, float]
    """The judged risk for each k that was tried, in order."""
    k: int | None
    """The first of them that meets the limit; None if none does."""
    ways: tuple[WayOut, ...]
    """Decisions that would meet the limit with the k of the recipe."""
    refused: str | None = None
    """Why no release meets the models with the k of the recipe; None if one does."""

    @property
    def undecided(self) -> bool:
        """Whether somebody has to choose a way out before the recipe can be met."""
        return self.k is None and bool(self.ways)

    def lines(self) -> tuple[str, ...]:
        """The rehearsal in sentences."""
        if self.refused is not None:
            return (f"Rehearsed: {self.refused}",)
        first = next(iter(self.tried))
        found = f"An attacker who knows all released columns finds {self.tried[first]:.1%} of the people at k = {first}"
        limit = f"the limit is {self.wanted:.1%}"
        if self.k == first:
            return (f"Rehearsed: {found}; {limit}.",)
        if self.k is not None:
            return (
                f"Rehearsed: {found}; {limit}. So the recipe says k = {self.k}, which meets it"
                f" ({self.tried[self.k]:.1%}).",
                f"To have k = {first} instead, write it there, and {', or '.join(way.does for way in self.ways)}."
                if self.ways
                else "",
            )
        return (f"Rehearsed: {found}; {limit}, and no k up to {max(self.tried)} meets it.",)

    def to_dict(self) -> dict[str, object]:
        """The rehearsal as plain data, as in the JSON document of ``sfumato init --json``."""
        return {
            "limit": self.wanted,
            "risk": {str(k): risk for k, risk in self.tried.items()},
            "k": self.k,
            "refused": self.refused,
            "ways": [way.to_dict() for way in self.ways],
        }


def rehearse(text: str, table: Table, *, seed: int = 0) -> Rehearsal | None:
    """Run the steps of a recipe with k-anonymity and a limit on risk, and count what all released columns find.

    k is doubled until the limit is met. Undecided columns are masked as quasi-identifiers. None if the recipe has no
    such model, limit or steps, if attackers are accepted, if the table has more than a million cells, or if the
    recipe cannot be run.
    """
    recipe = Recipe.parse(text)
    sizes = [model.k for model in recipe.models if isinstance(model, KAnonymity)]
    wanted = recipe.limits.risk
    if len(sizes) != 1 or wanted is None or recipe.limits.accepted or not recipe.steps:
        return None
    if table.rows * len(table.columns) > _MOST_CELLS:
        return None
    columns = {
        name: column.model_copy(update={"role": Role.QUASI}) if column.role is Role.UNDECIDED else column
        for name, column in recipe.schema.columns.items()
    }
    rest = Role.QUASI.value if recipe.schema.names(Role.UNDECIDED) else None
    recipe = replace(
        recipe,
        schema=replace(recipe.schema, columns=columns),
        steps=tuple(_short(step) for step in recipe.steps),
    )
    tried: dict[int, float] = {}
    ways: tuple[WayOut, ...] = ()
    k = sizes[0]
    while not tried or k <= table.rows * _LARGEST_CLASS:
        try:
            risk, found = _attacked(_with_k(recipe, k), table, seed, first=not tried)
        except SfumatoError as refusal:
            if not tried and recipe.schema.names(Role.SENSITIVE):
                failing = refusal.columns if isinstance(refusal, Unmet) else ()
                offered = tuple(
                    replace(way, rest=rest) for way in ways_to_a_release(recipe, table, failing=failing, seed=seed)
                )
                return Rehearsal(wanted=wanted, tried={}, k=None, ways=offered, refused=refusal.message)
            break
        ways = ways or tuple(replace(way, rest=rest) for way in found)
        tried[k] = risk
        if risk <= wanted * (1 if not ways else _MARGIN):
            return Rehearsal(wanted=wanted, tried=tried, k=k, ways=ways)
        k *= 2
    return Rehearsal(wanted=wanted, tried=tried, k=None, ways=ways) if tried else None


def ways_to_a_release(
    recipe: Recipe, table: Table, *, failing: Sequence[str] = (), seed: int = 0
) -> tuple[WayOut, ...]:
    """Ways out where no release meets the models: drop sensitive columns, or mask them.

    Each is tried, with the limit on risk if there is one: first for the columns about which even the coarsest table
    fails, then for all sensitive ones. None for a table of more than a million cells.
    """
    names = recipe.schema.names(Role.SENSITIVE)
    if not names or table.rows * len(table.columns) > _MOST_CELLS:
        return ()
    for some in dict.fromkeys((tuple(name for name in names if name in failing) or names, names)):
        shown, them = ", ".join(some), "it" if len(some) == 1 else "them"
        ways = (
            WayOut(does=f"drop {shown}", roles=dict.fromkeys(some, Role.DROP.value)),
            WayOut(
                does=f"mask {shown} with the quasi-identifiers, which no longer keeps {them} secret",
                roles=dict.fromkeys(some, Role.QUASI.value),
            ),
        )
        if found := tuple(way for way in ways if _suffices(recipe, way, table, seed)):
            return found
    return ()


def _suffices(recipe: Recipe, way: WayOut, table: Table, seed: int) -> bool:
    """Whether a release after this decision meets the models and the limit on risk."""
    columns = {
        name: column.model_copy(update={"role": Role(way.roles[name])}) if name in way.roles else column
        for name, column in recipe.schema.columns.items()
    }
    try:
        schema = replace(recipe.schema, columns=columns)
        changed = replace(recipe, schema=schema, steps=tuple(_short(step) for step in recipe.steps))
        risk, _ = _attacked(changed, table, seed, first=False)
    except SfumatoError:
        return False
    return recipe.limits.risk is None or recipe.limits.accepted is not None or risk <= recipe.limits.risk


def _short(step: Step) -> Step:
    """A step whose search is short, unless a proof is asked for."""
    if isinstance(step, Generalize) and step.search != "optimal":
        return step.model_copy(update={"evaluations": _EVALUATIONS, "seconds": _SECONDS})
    return step


def _with_k(recipe: Recipe, k: int) -> Recipe:
    models = tuple(KAnonymity(k=k) if isinstance(model, KAnonymity) else model for model in recipe.models)
    return replace(recipe, models=models)


def _attacked(recipe: Recipe, table: Table, seed: int, *, first: bool) -> tuple[float, tuple[WayOut, ...]]:
    """What an attacker who knows all columns finds, and the ways out of the limit for the first k."""
    data = Data.of(table, recipe.schema)
    made = make_release(recipe.uncharged(), data, rng=Rng(seed))
    scenario = AttackScenario(original=data, release=made.release, lineage=made.masked.lineage)
    attacks = [AnyColumns(most="all")]
    outcomes = run_attacks(scenario, attacks, rng=Rng(seed), n_targets=1000, progress=SILENT)
    if not isinstance(outcomes[0], Outcome):
        raise outcomes[0]
    if not first:
        return judged_risk(outcomes[0]), ()
    limits = judge_limits(recipe.limits, outcomes)
    outcomes = column_attribution(scenario, attacks, outcomes, limits, rng=Rng(seed), progress=SILENT)
    entries = [attack_to_dict(one) for one in outcomes]
    found = ways_out(entries, [one.to_dict() for one in limits], made.release.manifest)
    return float(entries[0]["judged"]), found
