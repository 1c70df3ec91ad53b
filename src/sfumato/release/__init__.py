"""What leaves: the release, the verdicts on it, the changes that made it, and the secret row map that stays."""

from sfumato.release.change import Change, Lineage
from sfumato.release.release import Release
from sfumato.release.verdict import State, Verdict

__all__ = ["Change", "Lineage", "Release", "State", "Verdict"]
