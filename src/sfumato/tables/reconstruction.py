"""Reconstruction of microdata from published tables, by constraint programming.

Every published statistic is a constraint on the unknown people of a block. If one list of people alone meets all
constraints, the tables disclose everybody in it. Reference: Garfinkel, Abowd, Martindale (2018), Understanding database
reconstruction attacks on public data, doi:10.1145/3291276.3295691.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.errors import BadParameter
from sfumato.extras import missing_extra
from sfumato.rationals import rational

Person = tuple[Any, ...]
"""The number (such as the age), then one value per attribute."""


@dataclass(frozen=True, kw_only=True)
class PublishedStatistic:
    """What a table says about the people who meet a condition."""

    where: Mapping[str, str] = field(default_factory=dict)
    """Attribute values that the people have in common."""
    low: int | None = None
    """Their smallest age, if the condition is about age."""
    high: int | None = None
    """Their largest age."""
    count: int | None = None
    """The number of people; None if it is suppressed."""
    at_most: int | None = None
    """The largest number of people that a suppressed cell can stand for."""
    mean: str | float | None = None
    """Mean age, rounded to the decimals that are written."""
    median: str | float | None = None
    """Median age; for an even number of people the mean of the two in the middle."""

    def __post_init__(self) -> None:
        if self.count is None and (self.at_most is None or self.mean is not None or self.median is not None):
            raise BadParameter("a suppressed statistic has `at_most` and neither mean nor median.")
        if self.count is not None and self.count < 1 and (self.mean is not None or self.median is not None):
            raise BadParameter("a mean or median is about at least one person.")


@dataclass(frozen=True, kw_only=True)
class ReconstructedPeople:
    """The lists of people that meet all published statistics."""

    solutions: tuple[tuple[Person, ...], ...]
    """Each is sorted by age."""
    complete: bool
    """Whether there are no others."""

    @property
    def unique(self) -> bool:
        """Whether the tables disclose everybody."""
        return self.complete and len(self.solutions) == 1


def reconstruct(
    statistics: Sequence[PublishedStatistic],
    *,
    people: int,
    attributes: Mapping[str, Sequence[str]],
    ages: tuple[int, int] = (0, 115),
    never: Sequence[PublishedStatistic] = (),
    limit: int = 1000,
    seconds: float = 60.0,
) -> ReconstructedPeople:
    """All lists of ``people`` that are consistent with the statistics, up to ``limit``.

    ``never`` are conditions that nobody meets, such as married children. The attack uses nothing but what is published.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "ortools", needed_by="reconstruction of tables") from None
    for statistic in (*statistics, *never):
        for name, value in statistic.where.items():
            if value not in attributes.get(name, ()):
                raise BadParameter(f"the attribute `{name}` has no value `{value}`.", fix="Check `attributes`.")
    program = _Program(cp_model, people, attributes, ages)
    for statistic in statistics:
        program.add(statistic)
    for statistic in never:
        program.add(PublishedStatistic(where=statistic.where, low=statistic.low, high=statistic.high, count=0))
    return program.solve(limit, seconds)


class _Program:
    """People in order of age, one integer and one truth value per attribute value each."""

    def __init__(self, cp: Any, people: int, attributes: Mapping[str, Sequence[str]], ages: tuple[int, int]) -> None:
        self.cp, self.model, self.top = cp, cp.CpModel(), ages[1]
        self.age = [self.model.new_int_var(*ages, f"age {i}") for i in range(people)]
        self.has: list[dict[tuple[str, str], Any]] = []
        for number in range(people):
            own = {(n, v): self.model.new_bool_var(f"{n} {v} {number}") for n, vs in attributes.items() for v in vs}
            for name, values in attributes.items():
                self.model.add_exactly_one(own[name, value] for value in values)
            self.has.append(own)
        for one, other in zip(self.age, self.age[1:], strict=False):
            self.model.add(one <= other)
        self.attributes = attributes

    def add(self, statistic: PublishedStatistic) -> None:
        inside = [self._inside(number, statistic) for number in range(len(self.age))]
        if statistic.count is None:
            self.model.add(sum(inside) <= statistic.at_most)
            return
        count = statistic.count
        self.model.add(sum(inside) == count)
        if statistic.mean is not None:
            self._mean(inside, count, rational(statistic.mean), _half_step(statistic.mean))
        if statistic.median is not None:
            self._median(inside, count, rational(statistic.median))

    def _inside(self, number: int, statistic: PublishedStatistic) -> Any:
        """A truth value that says whether a person meets the condition."""
        parts = [self.has[number][item] for item in statistic.where.items()]
        for bound, above in ((statistic.low, True), (statistic.high, False)):
            if bound is not None:
                holds = self.model.new_bool_var("")
                age = self.age[number]
                self.model.add(age >= bound if above else age <= bound).only_enforce_if(holds)
                self.model.add(age < bound if above else age > bound).only_enforce_if(~holds)
                parts.append(holds)
        if len(parts) == 1:
            return parts[0]
        inside = self.model.new_bool_var("")
        self.model.add_bool_and(parts).only_enforce_if(inside)
        self.model.add_bool_or([~part for part in parts] + [inside])
        return inside

    def _mean(self, inside: list[Any], count: int, mean: Fraction, slack: Fraction) -> None:
        ages = []
        for age, member in zip(self.age, inside, strict=True):
            counted = self.model.new_int_var(0, self.top, "")
            self.model.add(counted == age).only_enforce_if(member)
            self.model.add(counted == 0).only_enforce_if(~member)
            ages.append(counted)
        self.model.add_linear_constraint(sum(ages), -(-(mean - slack) * count // 1), (mean + slack) * count // 1)

    def _median(self, inside: list[object], count: int, median: Fraction) -> None:
        """People are sorted by age, so the middle one is the member with that many members up to it."""
        middle = [self._at_rank(inside, rank) for rank in {(count + 1) // 2, count // 2 + 1}]
        doubled = 2 * median if len(middle) == 1 else None
        if doubled is not None:
            self.model.add(2 * middle[0] * median.denominator == 2 * median.numerator)
        else:
            self.model.add(sum(middle) * median.denominator == 2 * median.numerator)

    def _at_rank(self, inside: list[Any], rank: int) -> Any:
        """The age of the member of that rank."""
        wanted, flags = self.model.new_int_var(0, self.top, ""), []
        for number, age in enumerate(self.age):
            flag = self.model.new_bool_var("")
            self.model.add_implication(flag, inside[number])
            self.model.add(sum(inside[: number + 1]) == rank).only_enforce_if(flag)
            self.model.add(wanted == age).only_enforce_if(flag)
            flags.append(flag)
        self.model.add_exactly_one(flags)
        return wanted

    def solve(self, limit: int, seconds: float) -> ReconstructedPeople:
        found: set[tuple[Person, ...]] = set()
        program = self

        class Collect(self.cp.CpSolverSolutionCallback):  # type: ignore[misc,name-defined]
            def on_solution_callback(self) -> None:
                found.add(program.read(self))
                if len(found) >= limit:
                    self.stop_search()

        solver = self.cp.CpSolver()
        solver.parameters.enumerate_all_solutions = True
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = seconds
        status = solver.solve(self.model, Collect())
        complete = status in (self.cp.OPTIMAL, self.cp.INFEASIBLE)
        return ReconstructedPeople(solutions=tuple(sorted(found)), complete=complete)

    def read(self, solution: Any) -> tuple[Person, ...]:
        """The people of a solution, in one order for all orders of people of the same age."""
        people = []
        for age, own in zip(self.age, self.has, strict=True):
            values = [next(v for v in vs if solution.value(own[n, v])) for n, vs in self.attributes.items()]
            people.append((solution.value(age), *values))
        return tuple(sorted(people))


def _half_step(written: str | float) -> Fraction:
    """Half a unit of the last decimal that is written; whole numbers are taken as exact to one decimal."""
    text = str(written)
    decimals = len(text.partition(".")[2]) or 1
    return Fraction(1, 2 * 10**decimals)
