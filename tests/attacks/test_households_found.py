"""Families are found where no member could be."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.attacks import AttackScenario, default_attacks, evaluate_attack, risk
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.evaluation import advice, attack_to_dict
from sfumato.release import Lineage, Release
from sfumato.rng import Rng

HOMES = 120


def scenario(*, left_out: float = 0.0, seed: int = 1) -> AttackScenario:
    """Ages in bands of twenty years and sexes: alone nobody is found, together most families are."""
    draw = np.random.default_rng(seed)
    size = draw.integers(2, 7, HOMES)
    home = np.repeat(np.arange(HOMES), size)
    people = pl.DataFrame(
        {"home": home, "age": draw.integers(0, 80, len(home)), "sex": draw.choice(["f", "m"], len(home))}
    )
    schema = Schema(
        columns={"home": Column(role="household"), "age": Column(role="quasi"), "sex": Column(role="quasi")}
    )
    band = pl.col("age") // 20 * 20
    number = draw.permutation(HOMES)
    coarse = people.with_columns(age=pl.format("[{}, {})", band, band + 20), home=pl.Series(number[home]))
    rows = draw.permutation(len(home))
    rows = rows[draw.random(len(rows)) >= left_out]
    steps = [{"step": "generalize", "parameters": {}, "truthful": True, "columns": ["age", "sex"]}]
    release = Release(table=Table(frame=coarse[rows]), manifest={"steps": steps})
    return AttackScenario(original=Data.of(Table(frame=people), schema), release=release, lineage=Lineage(rows))


def test_families_are_found_where_no_member_is() -> None:
    where = scenario()
    alone, family = (risk(evaluate_attack(attack, where, rng=Rng(1))) for attack in (Linkage(), PosteriorLinkage()))
    assert alone.high < 0.1
    assert family.low > 0.4


def test_members_who_were_left_out_do_not_hide_the_others() -> None:
    where = scenario(left_out=0.05)
    assert where.lineage is not None
    outcome = evaluate_attack(PosteriorLinkage(), where, rng=Rng(1))
    assert outcome.main.trials == len(where.lineage.rows)
    assert risk(outcome).low > 0.3


def test_a_small_household_is_as_hard_to_find_as_its_members() -> None:
    """With one member each, a family says no more than the person: linkage itself."""
    where = scenario()
    people = where.original.table.frame.with_columns(home=pl.int_range(pl.len()))
    assert where.lineage is not None
    released = where.release.table.frame.with_columns(home=pl.Series(where.lineage.rows))
    single = AttackScenario(
        original=Data.of(Table(frame=people), where.original.schema),
        release=Release(table=Table(frame=released), manifest=where.release.manifest),
        lineage=where.lineage,
    )
    assert (
        risk(evaluate_attack(PosteriorLinkage(), single, rng=Rng(1))).low
        < risk(evaluate_attack(Linkage(), single, rng=Rng(1))).high
    )


def test_the_battery_looks_for_families() -> None:
    assert "posterior-linkage" in [attack.part_name() for attack in default_attacks(scenario())]


def test_without_a_household_column_nobody_is_found() -> None:
    where = scenario()
    release = Release(table=Table(frame=where.release.table.frame.drop("home")), manifest=where.release.manifest)
    hidden = AttackScenario(original=where.original, release=release, lineage=where.lineage)
    outcome = evaluate_attack(PosteriorLinkage(), hidden, rng=Rng(1))
    assert risk(outcome).high < 0.1
    assert "together" not in outcome.detail
    assert "posterior-linkage" not in [attack.part_name() for attack in default_attacks(hidden)]


def test_households_are_drawn_whole() -> None:
    outcome = evaluate_attack(PosteriorLinkage(), scenario(), rng=Rng(1), n_targets=50, competing=False)
    assert 50 <= outcome.main.trials < 57


def test_the_advice_is_to_leave_the_household_column_out() -> None:
    plain = attack_to_dict(evaluate_attack(PosteriorLinkage(), scenario(), rng=Rng(1)))
    limit = {"limit": "risk", "wanted": 0.1, "value": plain["high"], "met": False}
    (told,) = advice([plain], [limit], {})
    assert "“home”" in told.changes[0]
