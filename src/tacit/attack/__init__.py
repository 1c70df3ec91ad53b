"""What an adversary gets from a release or an answer."""

from tacit.attack.attack import Attack, Discloses, Guesses, Linking, View
from tacit.attack.battery import battery
from tacit.attack.examine import examine
from tacit.attack.outcome import Arm, Outcome, Risk, risk
from tacit.attack.scene import Scene, lineage_by_key
from tacit.verbal import make_callable

__all__ = [
    "Arm",
    "Attack",
    "Discloses",
    "Guesses",
    "Linking",
    "Outcome",
    "Risk",
    "Scene",
    "View",
    "battery",
    "examine",
    "lineage_by_key",
    "risk",
]

make_callable(__name__)
