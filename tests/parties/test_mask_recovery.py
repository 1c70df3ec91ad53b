"""Parties that stop in the middle of a question: the others' total is opened, and nothing of a late message."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy import stats
from test_parties import COUNTS, breaking, faulty

from parties_sample import agreement, coordinator, copies, parties, rows, spent
from sfumato.errors import PartyFailed, QueryRefused
from sfumato.parties.mask_recovery import PRIME, Dealt, open_sum, recover, split
from sfumato.parties.party import Party
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.residues import Residues, add, from_integers, subtract, to_integers
from sfumato.parties.secure_sum import Announcement, OpenRound

MOMENTS = ("join", "after join", "deal", "after deal", "contribute", "after contribute", "unmask", "after unmask")
CELLS = 300
TABLE = {
    "visits": {
        "bounds": {"rows": 1, "groups": 1},
        "columns": {
            "person": {"kind": "integer"},
            "ward": {"kind": "category", "domain": {"values": [f"c{i:03d}" for i in range(CELLS)]}},
        },
    }
}  # fmt: skip


@pytest.mark.parametrize("at", MOMENTS)
def test_a_party_that_stops_at_any_moment_does_not_end_the_question(at: str) -> None:
    asked, members = breaking(at, 4, min_parties=3, dropouts=1)
    answer = asked.ask(COUNTS, epsilon=30)
    contributed = at.endswith("unmask")  # its message is part of the sum already
    assert answer.frame["COUNT(*)"].to_list() == [207, 50 if contributed else 0]
    assert answer.loss is not None
    assert answer.loss.size == 30
    charged = 30 if contributed or at == "after contribute" else 0
    assert [spent(party) for party in members.values()] == [30, charged, 30, 30]
    names = "p000, p001, p002, p003" if contributed else "p000, p002, p003"
    assert any(names in note for note in answer.explanation.notes)


def test_more_parties_than_agreed_end_the_question_and_a_new_attempt_is_charged_again() -> None:
    agreed = agreement(6, min_parties=3, dropouts=1)
    members = copies(agreed, 6, [rows("east", 10, 1.0)] * 2)
    asked = coordinator(agreed, members)
    asked = replace(
        asked, channels={**asked.channels, **{n: faulty(members[n], "contribute") for n in ("p000", "p001")}}
    )
    with pytest.raises(PartyFailed, match="p000, p001 did not contribute"):
        asked.ask(COUNTS, epsilon=30)
    assert [spent(party) for party in members.values()] == [0, 0, 30, 30, 30, 30]
    answer = asked.ask(COUNTS, epsilon=30, attempts=2)
    assert answer.frame["COUNT(*)"].to_list() == [40, 0]
    assert answer.loss is not None
    assert answer.loss.size == 60
    assert [spent(party) for party in members.values()] == [0, 0, 90, 90, 90, 90]


def test_many_parties_that_stop_at_different_moments() -> None:
    agreed = agreement(40, min_parties=25, colluding=3, dropouts=10)
    members = copies(agreed, 40, [rows("east", 10, 1.0)] * 2)
    asked = coordinator(agreed, members)
    broken = {name: faulty(members[name], MOMENTS[i % 8]) for i, name in enumerate(sorted(members)[:16])}
    answer = replace(asked, channels={**asked.channels, **broken}).ask(COUNTS, epsilon=40)
    # Two each of "unmask" and "after unmask" contributed; the other twelve are left out.
    assert answer.frame["COUNT(*)"].to_list() == [280, 0]
    charges = Counter(int(spent(party)) for party in members.values())
    assert charges == {40: 30, 0: 10}


def test_thresholds_leave_no_message_open_and_enough_noise() -> None:
    for count in range(2, 24):
        for colluding in range(count):
            for least in range(max(2, colluding + 1), count + 1):
                tolerance = agreement(2).model_copy(
                    update={"colluding": colluding, "min_parties": least, "dropouts": count}
                )
                found = tolerance.tolerance(count)
                honest = count - colluding
                # Each honest party reveals one of two secrets; both need the threshold, and colluders have both.
                assert honest < 2 * (found.threshold - colluding)
                assert found.noise_shares >= 1
                assert count - found.dropouts >= least
                if found.dropouts:
                    assert count - found.dropouts >= found.threshold
                    assert count - found.dropouts - colluding == found.noise_shares


def test_fewer_shares_than_the_threshold_tell_nothing() -> None:
    """Two of three shares at a threshold of three: every secret fits them with one third share."""
    secret = bytes(range(32))
    parts = split(secret, threshold=3, shares=3)
    assert recover(dict(enumerate(parts, 1))) == secret
    assert recover({1: parts[0], 2: parts[1]}) != secret
    shifted = int.from_bytes(parts[2], "big")
    seen = {recover({1: parts[0], 2: parts[1], 3: ((shifted + d) % PRIME).to_bytes(66, "big")}) for d in (1, 2, 3)}
    assert secret not in seen
    first = [split(secret, threshold=2, shares=2)[0] for _ in range(400)]
    uniform = [int.from_bytes(part, "big") / PRIME for part in first]
    assert stats.kstest(uniform, "uniform").pvalue > 1e-7


def played(count: int = 4) -> tuple[dict[str, Party], str, list[Announcement], dict[str, Residues]]:
    """All parties joined, dealt and contributed to a histogram."""
    agreed = agreement(count, tables=TABLE, min_parties=count - 1, dropouts=1)
    members = parties(agreed, [rows("c000", 20 + i, 0.0).drop("bill") for i in range(count)])
    sql = "SELECT ward, COUNT(*) FROM visits GROUP BY ward"
    question = PartiesQuestion.new(sql, agreement=agreed.digest(agreed.catalog()), epsilon="1", fit=0)
    said = [party.join(question, analyst="ann") for party in members.values()]
    dealt = {name: party.deal(question.digest(), said, analyst="ann") for name, party in members.items()}
    sent = {
        name: party.contribute(
            question.digest(), said, {one: dealt[one][name] for one in members if one != name}, analyst="ann"
        )
        for name, party in members.items()
    }
    return members, question.digest(), said, sent


SURVIVORS = ["p000", "p002", "p003"]


def late_message_read() -> list[int]:
    """A coordinator says that p001 stopped although it has its message, and removes all masks that it has shares of."""
    members, digest, said, sent = played()
    revealed = {name: members[name].unmask(digest, SURVIVORS, analyst="ann") for name in SURVIVORS}
    key = recover({place: revealed[name]["p001"] for place, name in ((1, "p000"), (3, "p002"), (4, "p003"))})
    assert key is not None
    opened = OpenRound(announcement=said[1], secret=X25519PrivateKey.from_private_bytes(key))
    assert opened.secret.public_key().public_bytes_raw() == said[1].key
    return to_integers(subtract(sent["p001"], opened.mask(CELLS, said)))


def test_the_message_of_a_party_that_was_called_late_stays_uniform() -> None:
    """300 numbers; without the self-mask all of them are small (the next test)."""
    words = np.array([value % 2**128 / 2.0**128 for value in late_message_read()])
    assert stats.kstest(words, "uniform").pvalue > 1e-7


def test_without_self_masks_the_late_message_would_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Dealt, "mask", lambda self, size: from_integers([0] * size))
    numbers = late_message_read()
    assert max(abs(value) for value in numbers) < 200
    assert abs(numbers[0] - 21) < 40


def test_the_sum_of_the_others_is_opened() -> None:
    members, digest, said, sent = played()
    revealed = {name: members[name].unmask(digest, SURVIVORS, analyst="ann") for name in SURVIVORS}
    total = reduce(add, [sent[name] for name in SURVIVORS])
    given: dict[str, Any] = {"announcements": said, "survivors": SURVIVORS, "threshold": 3}
    opened = to_integers(open_sum(total, revealed=revealed, **given))
    assert abs(opened[0] - 65) < 40
    assert max(abs(value) for value in opened[1:]) < 40
    wrong = {**revealed, "p003": {**revealed["p003"], "p001": revealed["p003"]["p000"]}}
    with pytest.raises(PartyFailed, match="p001 do not fit"):
        open_sum(total, revealed=wrong, **given)


def test_a_party_reveals_shares_once_and_only_for_a_list_that_fits() -> None:
    everybody = ["p000", "p001", "p002", "p003"]
    for wrong in (["p000", "p001"], ["p001", "p002", "p003"], [*everybody, "x"], ["p000", "p000", "p001", "p002"]):
        members, digest, _, _ = played()
        with pytest.raises(QueryRefused):
            members["p000"].unmask(digest, wrong, analyst="ann")
    members, digest, _, _ = played()
    with pytest.raises(QueryRefused):
        members["p001"].unmask(digest, everybody, analyst="eve")
    first = members["p000"].unmask(digest, everybody, analyst="ann")
    assert set(first) == set(everybody)
    with pytest.raises(QueryRefused, match="no open question"):
        members["p000"].unmask(digest, everybody[:3], analyst="ann")


def test_shares_of_another_round_are_refused_before_the_charge() -> None:
    agreed = agreement(4, min_parties=3, dropouts=1)
    members = parties(agreed, [rows("east", 5, 1.0)] * 4)

    def joined() -> tuple[str, list[Announcement], dict[str, dict[str, bytes]]]:
        question = PartiesQuestion.new(COUNTS, agreement=agreed.digest(agreed.catalog()), epsilon="1")
        said = [party.join(question, analyst="ann") for party in members.values()]
        dealt = {name: party.deal(question.digest(), said, analyst="ann") for name, party in members.items()}
        return question.digest(), said, dealt

    first, second = joined(), joined()
    swapped = {name: first[2][name]["p000"] for name in members if name != "p000"}
    for sealed in (swapped, {}, dict.fromkeys(swapped, b"")):
        digest, said, _ = joined()
        with pytest.raises(QueryRefused, match="shares of"):
            members["p000"].contribute(digest, said, sealed, analyst="ann")
    with pytest.raises(QueryRefused, match="before"):
        members["p001"].deal(second[0], second[1], analyst="ann")
    question = PartiesQuestion.new(COUNTS, agreement=agreed.digest(agreed.catalog()), epsilon="1")
    said = [party.join(question, analyst="ann") for party in members.values()]
    with pytest.raises(QueryRefused, match="another round"):
        members["p002"].contribute(question.digest(), said, {}, analyst="ann")
    assert [spent(party) for party in members.values()] == [0] * 4


@pytest.mark.parametrize(
    "changed", [{"dropouts": 1}, {"dropouts": 2, "min_parties": 2}, {"dropouts": 1, "min_parties": 2, "colluding": 1}]
)
def test_dropouts_that_cannot_be_tolerated_are_refused(changed: dict[str, Any]) -> None:
    """Of three parties all must remain without `min_parties`; one may stop; none if one colludes."""
    with pytest.raises(ValueError, match=r"`dropouts` can be [01] at most"):
        agreement(3, **changed)
