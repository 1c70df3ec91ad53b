"""Several collectors: one query over the tables of many parties, who share only the noisy total."""

from sfumato.registry import exports

__getattr__, __dir__ = exports(
    __name__,
    Agreement="agreement",
    BloomEncoder="bloom_encoding",
    Coordinator="coordinator",
    LocalChannel="channels",
    Party="party",
    PrivateSet="intersection_size",
    best_links="bloom_encoding",
    dice="bloom_encoding",
    frequency_attack="encoding_attacks",
    match_trails="trails",
    pattern_attack="encoding_attacks",
    rare_trails="trails",
    suppress_visits="trails",
)
