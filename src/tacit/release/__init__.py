"""What leaves: the release, the verdicts on it, the changes that made it, and the secret row map that stays."""

from tacit.release.change import Change, Lineage
from tacit.release.release import Release
from tacit.release.verdict import State, Verdict

__all__ = ["Change", "Lineage", "Release", "State", "Verdict"]
