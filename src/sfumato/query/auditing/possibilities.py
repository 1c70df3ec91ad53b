"""What is known of each pair of atom and value while a decision is being made."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.query.auditing.atoms import Flags, Ints

__all__ = ["Possibilities"]


@dataclass(kw_only=True)
class Possibilities:
    """What is known of each pair of atom and value."""

    yes: Flags
    no: Flags
    witnesses: list[Ints] = field(default_factory=list)
    """Solutions that proved something new."""
    spent: float = 0.0
    """Deterministic seconds that the last integer search took."""
    how: str = "examples"
    """Which tool settled it: examples, flow, relaxation, search; "time ran out" where pairs stayed open."""

    @property
    def open(self) -> Flags:
        return ~(self.yes | self.no)

    def learn(self, x: Ints) -> bool:
        """Take in a solution; whether it proved a new pair."""
        fresh = (x > 0) & ~self.yes
        if not fresh.any():
            return False
        self.yes |= fresh
        self.no &= ~fresh
        self.witnesses.append(x)
        return True

    def decided(self, need: int | None) -> bool:
        """Whether every atom has ``need`` values for certain, or some atom cannot have them; None: every pair."""
        if need is None:
            return not bool(self.open.any())
        return bool((self.yes.sum(axis=1) >= need).all() or ((~self.no).sum(axis=1) < need).any())
