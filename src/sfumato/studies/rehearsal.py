"""Rehearse a recipe on a table before it is run: does it meet its own limit on risk, and with which k?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sfumato.attacks import AttackScenario, Discloses, Outcome, default_attacks
from sfumato.attacks.record_linkage.any_columns import AnyColumns
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.errors import SfumatoError, Unmet
from sfumato.evaluation import make_release
from sfumato.evaluation.column_attribution import column_attribution
from sfumato.evaluation.limits import judge_limits, judged_risk
from sfumato.evaluation.run import attack_to_dict, run_attacks
from sfumato.evaluation.ways_out import LARGEST_CLASS, WayOut, ways_out
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


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """What the cheap attackers find, by k, and what remains if no k meets the limit."""

    wanted: float
    tried: Mapping[int, float]
    """The judged risk for each k that was tried, in order."""
    k: int | None
    """The first of them that meets the limit; None if none does."""
    ways: tuple[WayOut, ...]
    """Decisions that would meet the limit with the k of the recipe or, where they say so, with a larger one."""
    finder: str = "An attacker who knows all released columns"
    """Who found most with the first k."""
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
        found = f"{self.finder} finds {self.tried[first]:.1%} of the people at k = {first}"
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
    """Run the steps of a recipe with k-anonymity and a limit on risk, and count whom its attackers find.

    They know all released columns, or the quasi-identifiers; expensive attacks do not run. k is doubled until the limit
    is met. If no k meets it, each way out is tried too, with k doubled where it has to be. Undecided columns are
    masked as quasi-identifiers. None if the recipe has no such model, limit or steps, if attackers are accepted, if the
    table has more than a million cells, or if the recipe cannot be run.
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
    finder = Rehearsal.finder
    for k in _sizes(recipe, table):
        try:
            risk, found, wide = _attacked(_with_k(recipe, k), table, seed, first=not tried)
        except SfumatoError as refusal:
            if not tried and recipe.schema.names(Role.SENSITIVE):
                failing = refusal.columns if isinstance(refusal, Unmet) else ()
                offered = tuple(
                    replace(way, rest=rest) for way in ways_to_a_release(recipe, table, failing=failing, seed=seed)
                )
                return Rehearsal(wanted=wanted, tried={}, k=None, ways=offered, refused=refusal.message)
            break
        if not tried:
            ways = tuple(replace(way, rest=rest) for way in found)
            finder = finder if wide else "An attacker who knows the quasi-identifiers"
        tried[k] = risk
        if risk <= wanted * (1 if len(tried) == 1 else _MARGIN):
            kept = tuple(way for way in ways if way.k is None)
            return Rehearsal(wanted=wanted, tried=tried, k=k, ways=kept, finder=finder)
    if not tried:
        return None
    sufficient = (_sufficient(recipe, way, table, seed) for way in ways)
    found = tuple(way for way in sufficient if way is not None)
    return Rehearsal(wanted=wanted, tried=tried, k=None, ways=found, finder=finder)


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
        tried = (_sufficient(recipe, way, table, seed) for way in ways)
        if found := tuple(way for way in tried if way is not None):
            return found
    return ()


def _sizes(recipe: Recipe, table: Table) -> Iterator[int]:
    """The k of the recipe, and its doubles up to a tenth of the rows; nothing without k-anonymity."""
    k = next((model.k for model in recipe.models if isinstance(model, KAnonymity)), None)
    if k is not None:
        yield k
        while (k := 2 * k) <= table.rows * LARGEST_CLASS:
            yield k


def _sufficient(recipe: Recipe, way: WayOut, table: Table, seed: int) -> WayOut | None:
    """The decision with the k with which a release after it meets the models and the limit on risk; None without."""
    columns = {
        name: column.model_copy(update={"role": Role(way.roles[name])}) if name in way.roles else column
        for name, column in recipe.schema.columns.items()
    }
    schema = replace(recipe.schema, columns=columns)
    changed = replace(recipe, schema=schema, steps=tuple(_short(step) for step in recipe.steps))
    accepted = way.accepts or recipe.limits.accepted is not None
    wanted = recipe.limits.risk
    sizes = list(_sizes(recipe, table)) or [0]
    for k in sizes:
        try:
            risk, _, _ = _attacked(_with_k(changed, k), table, seed, first=False, accepted=accepted)
        except SfumatoError:
            return None
        if wanted is None or risk <= wanted * (1 if k == sizes[0] else _MARGIN):
            return way if k in (sizes[0], way.k) else way.with_k(k)
    return None


def _short(step: Step) -> Step:
    """A step whose search is short, unless a proof is asked for."""
    if isinstance(step, Generalize) and step.search != "optimal":
        return step.model_copy(update={"evaluations": _EVALUATIONS, "seconds": _SECONDS})
    return step


def _with_k(recipe: Recipe, k: int) -> Recipe:
    models = tuple(KAnonymity(k=k) if isinstance(model, KAnonymity) else model for model in recipe.models)
    return replace(recipe, models=models)


def _attacked(
    recipe: Recipe, table: Table, seed: int, *, first: bool, accepted: bool = False
) -> tuple[float, tuple[WayOut, ...], bool]:
    """The largest judged risk of the cheap attacks on identity, without those with any columns if they are accepted;
    the ways out for the first k; and whether an attacker with any columns found most.
    """
    data = Data.of(table, recipe.schema)
    made = make_release(recipe.uncharged(), data, rng=Rng(seed))
    scenario = AttackScenario(original=data, release=made.release, lineage=made.masked.lineage)
    declared = [
        attack
        for attack in default_attacks(scenario)
        if attack.cheap and attack.discloses is Discloses.IDENTITY and not attack.any_columns
    ]
    wide = AnyColumns(most="all")
    attacks = declared if accepted else [wide, *declared]
    outcomes = run_attacks(scenario, attacks, rng=Rng(seed), n_targets=1000, progress=SILENT)
    if attacks and not isinstance(outcomes[0], Outcome):
        raise outcomes[0]
    judged = [(judged_risk(one), one.any_columns) for one in outcomes if isinstance(one, Outcome)]
    risk, by_any = max(judged, default=(0.0, False))
    if not first:
        return risk, (), by_any
    limits = judge_limits(recipe.limits, outcomes)
    outcomes = column_attribution(scenario, attacks, outcomes, limits, rng=Rng(seed), progress=SILENT)
    entries = [attack_to_dict(one) for one in outcomes]
    return risk, ways_out(entries, [one.to_dict() for one in limits], made.release.manifest), by_any
