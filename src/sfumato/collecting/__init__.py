"""Collecting without a trusted collector: local differential privacy.

Each person randomizes their answer on their own device and sends only the report. The collector estimates counts, means
and distributions of all people from the reports.

>>> from sfumato.collecting import HadamardResponse
>>> protocol = HadamardResponse(epsilon=1, values=3)
>>> reports = protocol.randomize([0, 2, 2, 1, 2] * 2000)
>>> estimate = protocol.estimate(protocol.tally(reports), confidence=0.999999)
>>> bool(estimate.low[2] < 6000 < estimate.high[2])
True
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    ChangeDetection="change_detection",
    Deployment="longitudinal",
    FrequencyEstimate="estimates",
    FrequencyProtocol="frequency_protocol",
    HeavyHitters="frequencies._heavy_hitters",
    MeanEstimate="estimates",
    NumberProtocol="number_protocol",
    Rappor="rappor",
    Survey="survey",
    Tally="estimates",
    averaging_attack="longitudinal",
    change_detection_attack="change_detection",
    largest_shift="manipulation",
    shuffled_epsilon="shuffling",
)
