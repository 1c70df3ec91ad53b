"""Percent re-identified one by one (distance) and with everybody given a row at once; families too.

    python benchmarks/assignment.py [--record]

The Census file (1,080 rows), an adversary who knows the first six columns of all people; and 2,000 people of a
household survey, 5-anonymous in urban/rural, relation, sex and age, by an adversary who knows families.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
from record import Figures

from sfumato.attacks import Attack, AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage.assignment import Assignment
from sfumato.attacks.record_linkage.distance_linkage import DistanceLinkage
from sfumato.attacks.record_linkage.linkage import Linkage
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Step
from sfumato.masking.methods.mondrian import Mondrian
from sfumato.masking.methods.noise import Noise
from sfumato.masking.methods.rank_swap import RankSwap
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.pipeline import protect
from sfumato.release import Release
from sfumato.rng import Rng

DATA = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"


def scenario(data: Data, step: Step, models: tuple[KAnonymity, ...] = ()) -> AttackScenario:
    made = protect(data, steps=[step], models=models, rng=Rng(3))
    release = Release(table=made.data.table, manifest={"steps": [done.public() for done in made.steps]})
    return AttackScenario(original=data, release=release, lineage=made.lineage)


def show(figures: Figures, masking: str, where: AttackScenario, attacks: dict[str, Attack]) -> None:
    rates = {name: 100 * evaluate_attack(attack, where, rng=Rng(1)).main.rate for name, attack in attacks.items()}
    figures.add(masking=masking, **rates)


def main() -> None:
    frame = pl.read_csv(DATA / "CASCrefmicrodata.csv")
    frame = frame.select(frame.columns[:6])
    census = Data.of(Table(frame=frame), Schema(columns={name: Column(role=Role.QUASI) for name in frame.columns}))
    attacks: dict[str, Attack] = {"distance": DistanceLinkage()}
    attacks |= {f"assignment by {by}": Assignment(by=by) for by in ("values", "ranks")}
    attacks |= {"posterior": PosteriorLinkage()}
    figures = Figures("assignment", "census", {"masking": ""} | dict.fromkeys(attacks, ".1f"))
    for step in (
        RankSwap(p=5),
        RankSwap(p=10),
        RankSwap(p=10, variant="p-distribution"),
        Noise(variance_ratio=0.1),
        Noise(variance_ratio=0.1, variant="correlated"),
    ):
        settings = ", ".join(f"{key} = {value}" for key, value in step.model_dump(exclude_defaults=True).items())
        show(figures, f"{step.part_name()}, {settings}", scenario(census, step), attacks)
    survey = pl.read_csv(DATA / "testdata.csv").head(2000).select("urbrur", "relat", "sex", "age", "ori_hid")
    roles = {name: Column(role=Role.HOUSEHOLD if name == "ori_hid" else Role.QUASI) for name in survey.columns}
    people = Data.of(Table(frame=survey), Schema(columns=roles))
    families_of(people)


def families_of(people: Data) -> None:
    """Whole households of a survey against its members."""
    families: dict[str, Attack] = {"linkage": Linkage(), "posterior-linkage": PosteriorLinkage()}
    figures = Figures("assignment", "households", {"masking": ""} | dict.fromkeys(families, ".1f"))
    show(figures, "mondrian, k = 5", scenario(people, Mondrian(), (KAnonymity(k=5),)), families)


if __name__ == "__main__":
    main()
