"""A larger k is a way out only where the attack stays within what the present k allows."""

from sfumato.evaluation.ways_out import ways_out
from sfumato.stats import wilson

MANIFEST = {"rows": 545, "models": [{"k-anonymity": {"k": 20}}], "columns": {"age": "quasi"}}


def ways(hits: int, tried: int = 545, **manifest: object) -> list[int | None]:
    low, high = wilson(hits, tried)
    attack = {
        "attack": "linkage", "discloses": "identity", "risk": hits / tried, "low": low, "judged": high, "tried": tried,
        "knows": ["age"],
    }  # fmt: skip
    limit = {"limit": "risk", "wanted": 0.05, "met": high <= 0.05}
    return [way.k for way in ways_out([attack], [limit], {**MANIFEST, **manifest})]


def test_a_larger_k_is_offered_where_its_worst_case_meets_the_limit() -> None:
    assert ways(18) == [40]
    assert ways(12) == [], "the limit is met"


def test_no_k_is_offered_against_an_attack_that_finds_more_than_one_in_k() -> None:
    assert ways(272) == []


def test_no_k_is_offered_that_the_rows_cannot_meet_or_without_k_anonymity() -> None:
    assert ways(18, rows=300) == []
    assert ways(18, models=[{"l-diversity": {"l": 2}}]) == []
