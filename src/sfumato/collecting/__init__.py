"""Collecting without a trusted collector: local differential privacy, and several parties who share only a total.

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
    Agreement="parties.agreement",
    BloomEncoder="parties.bloom_encoding",
    ChangeDetection="local.change_detection",
    Coordinator="parties.coordinator",
    Deployment="local.longitudinal",
    FrequencyEstimate="local.estimates",
    FrequencyProtocol="local.frequency_protocol",
    HeavyHitters="local.heavy_hitters",
    LocalChannel="parties.channels",
    MeanEstimate="local.estimates",
    NumberProtocol="local.number_protocol",
    Party="parties.party",
    PrivateSet="parties.intersection_size",
    Rappor="local.rappor",
    Survey="local.survey",
    Tally="local.estimates",
    averaging_attack="local.longitudinal",
    best_links="parties.bloom_encoding",
    change_detection_attack="local.change_detection",
    dice="parties.bloom_encoding",
    frequency_attack="parties.encoding_attacks",
    largest_shift="local.manipulation",
    match_trails="parties.trails",
    pattern_attack="parties.encoding_attacks",
    rare_trails="parties.trails",
    shuffled_epsilon="local.shuffling",
    suppress_visits="parties.trails",
)
