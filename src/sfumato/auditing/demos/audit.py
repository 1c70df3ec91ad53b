"""Demo: query auditing. An auditor refuses exact answers that would disclose a sensitive value."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl

from sfumato.auditing.answer_forms import ListForm
from sfumato.auditing.auditor import Auditor, Decision
from sfumato.auditing.k_assign import AssignAuditor
from sfumato.auditing.rules import AuditRules
from sfumato.auditing.simulatable import SimulatableAuditor
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

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


class AuditDemo(Demo):
    """Query auditing: overlapping lists of diseases without names disclose who has which.

    All people in this demo are synthetic.
    """

    reference = "Kenthapadi, Mishra, Nissim (2005), Simulatable auditing, doi:10.1145/1065167.1065183"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        write(Table(frame=PATIENTS), folder / "patients.csv", force=True)
        (folder / "log.sql").write_text("\n".join([FIRST, SECOND, THIRD]) + "\n", encoding="utf-8")
        auditor = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2))
        say(
            "\n[bold]1. A clinic answers queries exactly, as lists of diseases without names.[/bold] The names, ZIP "
            "codes, ages and sexes of its seven patients are public. The rule (k = 2): after every answer, each "
            "patient must still have at least [bold]2 possible diseases[/bold]."
        )
        first = auditor.ask(FIRST)
        say(
            f"\n[bold]2.[/bold] {_decision_text(first)}\n   The list is about Clark, Debra, Elaine and Fiona. Each of "
            "them may have any of the four diseases."
        )
        second = auditor.ask(SECOND)
        say(
            f"\n[bold]3.[/bold] {_decision_text(second)}\n   The exact answer lists Earache, Earache and Flu for "
            "Elaine, Fiona and Gary. Elaine and Fiona are in both lists, and the first list has only one Earache, so "
            "Gary has the other one."
        )
        names = ", ".join(PATIENTS["name"].gather(list(second.exposed)).to_list())
        say(f"   [dim]For the owner only: the exact answer would have exposed {names}.[/dim]")
        third = auditor.ask(THIRD)
        say(
            f"\n[bold]4.[/bold] {_decision_text(third)}\n   Clark is the only man in ZIP 12000. "
            "The difference from the first list is Clark's disease: Cold."
        )
        counterfeiting = Auditor(PATIENTS, secrets=["disease"], rules=AuditRules(k=2, counterfeits=1))
        counterfeiting.seed = Rng(self.seed).child("counterfeits").generator.bytes(32)
        whole, women = counterfeiting.ask(FIRST), counterfeiting.ask(THIRD)
        clark = counterfeiting.possible_values("disease")[PATIENTS["name"].to_list().index("Clark")]
        say(
            "\n[bold]5. Counterfeit values instead of a refusal.[/bold] Another clinic may add one false disease to a "
            f"list, and says how many it added.\n   {_decision_text(whole)}\n   {_decision_text(women)}\n   Both "
            f"lists together leave {len(clark)} possible diseases for Clark: {', '.join(clark)}. Lists that are safe "
            "get a false value, too, in half of the cases: otherwise a false value would tell that the true list "
            "discloses somebody."
        )
        looks, simulates = _leak()
        say(
            "\n[bold]6. Refusals disclose information, too.[/bold] A query asks about two people with the same "
            "disease. The auditor sees the answer and refuses. An analyst who knows the rule concludes [bold]that both "
            "have the same disease[/bold]. The next query asks about them and a third person: Flu, Flu, Cold. "
            f"[bold red]Possible worlds left: {looks}[/bold red]; all three diseases are known. A "
            "[italic]simulatable[/italic] auditor decides without seeing the answer and refuses the pair whatever "
            f"their diseases are. [bold green]Possible worlds left: {simulates}[/bold green]; everyone has at least "
            "two possible diseases."
        )
        say(
            f"\nTry it:  sfumato audit {folder / 'log.sql'} --data {folder / 'patients.csv'} --secret disease --k 2\n"
            "         and the same with --counterfeits 1\n"
        )
        return {
            "decisions": [first.verdict, second.verdict, third.verdict],
            "exposed": [len(decision.exposed) for decision in (first, second, third)],
            "counterfeits": [len(decision.fakes) for decision in (whole, women)],
            "possible_for_clark": clark,
            "worlds_left": {"looks": looks, "simulates": simulates},
        }


def _decision_text(decision: Decision) -> str:
    colour = "red" if decision.verdict == "refused" else "green"
    detail = f": {', '.join(decision.answer)}" if decision.answer else f" ({decision.reason})"
    verdict = f"answered with {len(decision.fakes)} false" if decision.fakes else decision.verdict
    return f"{decision.query}\n   → [{colour}]{verdict}[/{colour}]{detail}"


def _leak() -> tuple[int, int]:
    """Possible worlds left after a query about two people with Flu and a query about them and a third with Cold.

    The first count is for an auditor that sees the answers, the second for a simulatable auditor. A world is possible
    if both queries give the same decisions and answers in it as in the true one.
    """
    truth = (1, 1, 0)

    def transcript(world: tuple[int, ...], simulates: bool) -> tuple[object, ...]:
        auditor = AssignAuditor(world, values=3, k=2)
        public = SimulatableAuditor(people=3, values=3, k=2, allow=0.3, shares=[1, 1, 1])
        responses: list[object] = []
        for people in ((0, 1), (0, 1, 2)):
            judgement = auditor.judge(people)
            if public.allows(people, ListForm(range(3))) if simulates else judgement.safe:
                auditor.accept(judgement)
                public.learn(people, judgement.answer)
                responses.append(tuple(judgement.answer.totals))
            else:
                responses.append(None)
        return tuple(responses)

    def left(simulates: bool) -> int:
        true = transcript(truth, simulates)
        return sum(transcript(world, simulates) == true for world in product(range(3), repeat=3))

    return left(False), left(True)
