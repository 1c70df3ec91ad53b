"""Which pairs of atom and value are proved possible or impossible so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.arrays import Ints
from sfumato.auditing.atoms import Flags


@dataclass(kw_only=True)
class Possibilities:
    """Pairs proved possible (``yes``) and impossible (``no``); the others are open."""

    yes: Flags
    no: Flags
    witnesses: list[Ints] = field(default_factory=list)
    """Solutions that proved something new."""
    spent: float = 0.0
    """Deterministic seconds that the last integer search took."""
    how: str = "examples"
    """The last method used: examples, flow, relaxation, search; "time ran out" where pairs stayed open."""

    @property
    def open(self) -> Flags:
        return ~(self.yes | self.no)

    def learn(self, x: Ints) -> bool:
        """Record a solution. Return whether it proved a new pair possible."""
        fresh = (x > 0) & ~self.yes
        if not fresh.any():
            return False
        self.yes |= fresh
        self.no &= ~fresh
        self.witnesses.append(x)
        return True

    def decided(self, need: int | None) -> bool:
        """Whether every atom provably has ``need`` values, or one cannot have them. None: whether no pair is open."""
        if need is None:
            return not bool(self.open.any())
        return bool((self.yes.sum(axis=1) >= need).all() or ((~self.no).sum(axis=1) < need).any())
