"""Contract of a check of a release: what it lacks is "not checked", and its verdict is the same every time."""

from __future__ import annotations

from dataclasses import replace

from sfumato.evaluation.check import Check, Subject, verdicts_of
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.release import Lineage, State
from sfumato.testing.parts import run_checks
from sfumato.testing.population import population

_ROWS = 100


def check_check(check: Check) -> None:
    """Raise AssertionError unless ``check`` keeps the contract of a check.

    A release that lacks what the check needs is never judged: its verdict is "not checked" with a reason. Whether the
    check applies does not depend on values of rows. The same release has the same verdict every time.
    """
    run_checks(check, RELEASE_CHECKS)


def _subject(seed: int = 1) -> Subject:
    original = population(_ROWS, seed=seed)
    released = original.with_frame(original.table.frame.drop("name"))
    return Subject(
        schema=original.schema, models=(KAnonymity(k=2),), release=released, original=original,
        lineage=Lineage.identity(_ROWS),
    )  # fmt: skip


def what_lacks_is_not_checked(check: Check) -> None:
    bare = replace(_subject(), original=None, lineage=None)
    found = verdicts_of(check, bare)
    if check.needs and check.applies(bare):
        assert found, "there is no verdict where the release lacks what the check needs"
        assert all(verdict.state is State.NOT_CHECKED for verdict in found), "it judges without what it needs"
    assert all(verdict.reason for verdict in found if verdict.state is State.NOT_CHECKED), "a verdict has no reason"


def rows_do_not_decide_whether_it_applies(check: Check) -> None:
    applies = {check.applies(_subject(seed)) for seed in range(1, 4)}
    assert len(applies) == 1, "whether it applies depends on values of rows"


def the_verdict_is_the_same_every_time(check: Check) -> None:
    subject = _subject()
    assert verdicts_of(check, subject) == verdicts_of(check, subject), "another verdict on the same release"


RELEASE_CHECKS = (
    what_lacks_is_not_checked,
    rows_do_not_decide_whether_it_applies,
    the_verdict_is_the_same_every_time,
)
