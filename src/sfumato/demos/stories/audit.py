"""Seven patients, a hospital that answers exactly, and an auditor that knows when to say no."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl

from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.story import Say, Story
from sfumato.progress import SILENT, Progress
from sfumato.query.auditing.auditor import Auditor, Decision
from sfumato.query.auditing.k_assign import AssignAuditor
from sfumato.query.auditing.rules import AuditRules
from sfumato.query.auditing.simulatable import SimulatableAuditor

__all__ = ["AuditDemo"]

PATIENTS = pl.DataFrame(
    {
        "name": ["Alison", "Ben", "Clark", "Debra", "Elaine", "Fiona", "Gary"],
        "zip": [10000, 11000, 12000, 12000, 12000, 12000, 14000],
        "age": [18, 19, 20, 21, 22, 23, 24],
        "sex": ["F", "M", "M", "F", "F", "F", "M"],
        "disease": ["Asthma", "Bronchitis", "Cold", "Diabetes", "Earache", "Flu", "Earache"],
    }
)
FIRST = "SELECT disease FROM patients WHERE zip = 12000"
SECOND = "SELECT disease FROM patients WHERE age >= 22"
THIRD = "SELECT disease FROM patients WHERE zip = 12000 AND sex = 'F'"


class AuditDemo(Story):
    """Seven patients whose diseases are told as lists without names, and what lists give away when they overlap.

    Everybody in this story is made up.
    """

    reference = "Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183"

    def tell(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        write(Table(frame=PATIENTS), folder / "patients.csv", force=True)
        (folder / "log.sql").write_text("\n".join([FIRST, SECOND, THIRD]) + "\n", encoding="utf-8")
        auditor = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2))
        say(
            "\n[bold]1. A clinic answers exactly, but as lists without names.[/bold] Its seven patients' names, ZIP "
            "codes, ages and sexes are known in town. The rule: whatever is told, everyone must keep at least "
            "[bold]2 possible diseases[/bold]."
        )
        first = auditor.ask(FIRST)
        say(f"\n[bold]2.[/bold] {_shown(first)}\n   Clark, Debra, Elaine and Fiona: each may have any of the four.")
        second = auditor.ask(SECOND)
        say(
            f"\n[bold]3.[/bold] {_shown(second)}\n   Elaine, Fiona and Gary have Earache, Earache and Flu. Elaine and "
            "Fiona are in both lists, and the first has one Earache only: the other one would be Gary's."
        )
        names = ", ".join(PATIENTS["name"].gather(list(second.exposed)).to_list())
        say(f"   [dim]For the owner only: the plain answer would have exposed {names}.[/dim]")
        third = auditor.ask(THIRD)
        say(
            f"\n[bold]4.[/bold] {_shown(third)}\n   Clark is the only man of ZIP 12000; "
            "the difference would be Clark's Cold."
        )
        repaired = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2, counterfeits=2))
        repaired.ask(FIRST)
        fake = repaired.ask(THIRD)
        say(
            f"\n[bold]5. Instead of a no: counterfeits.[/bold] {_shown(fake)}\n   {len(fake.answer)} diseases for "
            f"{fake.people} people: {len(fake.fakes)} false, and nobody can tell which. No smaller number would do."
        )
        looks, simulates = _leak()
        say(
            "\n[bold]6. A refusal can tell, too.[/bold] Ask about two people. The auditor looks, sees the same disease "
            "twice, and refuses; an asker who knows the rule now knows [bold]that they have the same[/bold]. Ask about "
            "them and a third: Flu, Flu, Cold. "
            f"[bold red]Possible worlds left: {looks}[/bold red]; all three are known. A [italic]simulatable[/italic] "
            "auditor decides before it looks, from what anybody could know, and refuses the pair whatever they have: "
            f"[bold green]{simulates} worlds are left[/bold green], and everyone keeps two diseases."
        )
        say(
            f"\nTry it:  sfumato audit {folder / 'log.sql'} --data {folder / 'patients.csv'} --secret disease --k 2\n"
            "         and the same with --counterfeits 2\n"
        )
        return {
            "decisions": [first.verdict, second.verdict, third.verdict],
            "exposed": [len(made.exposed) for made in (first, second, third)],
            "counterfeits": len(fake.fakes),
            "worlds_left": {"looks": looks, "simulates": simulates},
        }


def _shown(made: Decision) -> str:
    colour = "red" if made.verdict == "refused" else "green"
    told = f": {', '.join(made.answer)}" if made.answer else f" ({made.reason})"
    return f"{made.query}\n   → [{colour}]{made.verdict}[/{colour}]{told}"


def _leak() -> tuple[int, int]:
    """Two people with Flu and one with Cold: worlds left to an asker of the pair and then of all three, by auditor.

    Every world is asked the same two questions; those with the same decisions and answers as the true one are left.
    """
    truth = (1, 1, 0)

    def seen(world: tuple[int, ...], simulates: bool) -> tuple[object, ...]:
        auditor = AssignAuditor(world, values=3, k=2)
        public = SimulatableAuditor(people=3, values=3, k=2, allow=0.3)
        heard: list[object] = []
        for people in ((0, 1), (0, 1, 2)):
            judgement = auditor.judge(people)
            if public.allows(people) if simulates else judgement.safe:
                auditor.accept(judgement)
                public.learn(people, judgement.answer)
                heard.append(tuple(judgement.answer.counts))
            else:
                heard.append(None)
        return tuple(heard)

    def left(simulates: bool) -> int:
        true = seen(truth, simulates)
        return sum(seen(world, simulates) == true for world in product(range(3), repeat=3))

    return left(False), left(True)
