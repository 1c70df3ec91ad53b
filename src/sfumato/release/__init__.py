"""Releases: the masked table with its manifest, verdicts of privacy models, changes by steps, and the secret row
map; their standing."""

from sfumato.release.change import Change, Lineage
from sfumato.release.release import Release
from sfumato.release.standing import Judgement, Standing
from sfumato.release.verdict import State, Verdict

__all__ = ["Change", "Judgement", "Lineage", "Release", "Standing", "State", "Verdict"]
