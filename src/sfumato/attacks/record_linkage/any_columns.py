"""Record linkage by an attacker who knows any few of the released columns, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Stage, View
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class AnyColumns(Attack):
    """An attacker who happens to know a few released columns of a person, whichever identify most people.

    Quasi-identifiers are a declaration of the data owner. This attacker does not keep to it: relatives, colleagues,
    employers and other files know other columns. Among all sets of up to ``most`` released columns the one that finds
    most people is searched, sensitive columns included; with ``most: all`` the attacker knows all released columns.

    Sets of true values are counted exactly for every person in the release: among k rows that look alike, one choice in
    k is correct. Numbers that were perturbed are compared in bins during the search. The best sets are then attacked
    with all evidence of their columns (``posterior-linkage``) and by distances and assignments; what finds most on a
    few targets is run on all. The outcome names the columns, and what was searched.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.ANY_COLUMNS
    any_columns: ClassVar[bool] = True
    main: ClassVar[str] = "most"
    examples = ({}, {"most": "all"})
    reference: ClassVar[str] = (
        "Narayanan, A., Shmatikov, V. (2010). Myths and fallacies of “personally identifiable information”. "
        "Communications of the ACM 53(6). doi:10.1145/1743546.1743558"
    )

    most: Annotated[int, Field(ge=1, le=3)] | Literal["all"] = 3
    """How many columns the attacker knows at most, 1 to 3, or ``all`` released columns."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return () if scenario.synthetic else (cls(), cls(most="all"))

    @classmethod
    def remedy(cls, detail: Mapping[str, Any]) -> str | None:
        sets = [entry["columns"] for entry in detail.get("sets") or () if entry["share"] > 0]
        if not sets:
            change = "Drop columns, mask them as quasi-identifiers, or accept these attackers (`accepted` in `limits`)."
            return change if detail else None
        names = "; ".join(", ".join(f"“{name}”" for name in columns) for columns in sets)
        return (
            f"Mask or remove the columns that identify people together: {names}. If no attacker can know them, say so "
            "in the recipe under `limits`: accepted."
        )

    @property
    def setting(self) -> str:
        return "all" if self.most == "all" else f"up to {self.most}"

    def linkers(self, known: Sequence[str], true: Sequence[str], published: bool = True) -> tuple[Attack, ...]:
        """The attacks with which these columns are linked; ``true`` are those whose released values are true, and
        ``published`` says that the steps are published, so that the likelihood of a perturbation is known.
        """
        by_value = (Linkage(knows=tuple(true), transparent=self.transparent),) if true else ()
        if len(true) == len(known):
            return by_value
        knows = {"knows": tuple(known), "transparent": self.transparent}
        # Linkers without the method check the channels: whichever finds most is reported.
        by_method = (PosteriorLinkage(**knows),) if published else ()
        by_distance = (DistanceLinkage(**knows), Assignment(by="values", **knows), Assignment(by="ranks", **knows))
        return (*by_value, *by_method, *by_distance)

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        [linker, *_] = self.linkers(view.knows, view.untouched)
        return linker.guess(view, rng, progress)
