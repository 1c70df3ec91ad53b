"""Demo: re-identification of a hospital file by a voter list, with synthetic people."""

from __future__ import annotations

from pathlib import Path

from sfumato.api.kinds.microdata.protect import protect_microdata as protect
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.demos.base import Demo, Say
from sfumato.demos.people import hospital, voters
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe

RECIPE = """\
sfumato: 1                       # version of the recipe language
title: Hospital discharges
data: hospital.csv
seed: {seed}                        # repeats this run, with the key in release-private/
columns:
  name:       {{role: identifier}}
  zip:        {{role: quasi, kind: category, hierarchy: {{mask: right}}}}
  birth_date: {{role: quasi, kind: date, hierarchy: {{dates: [month, year, decade]}}}}
  sex:        {{role: quasi}}
  admitted:   {{role: drop, reason: "with ZIP and sex the day of admission singles out most patients"}}
  diagnosis:  {{role: sensitive}}
models:
  - k-anonymity: {{k: 5}}
steps:
  - generalize: {{search: optimal, suppression: 0.02, metric: loss}}
attacks:
  - linkage: {{auxiliary: voters.csv}}
  - linkage
  - attribute-linkage: {{secret: diagnosis}}
measures: [class-sizes, uniqueness, prosecutor, ncp, marginals, pairs]
limits:
  risk: 0.09
  accepted: {{by: data office of the hospital, reason: nobody outside the hospital knows the diagnosis}}
"""


class HospitalDemo(Demo):
    """A hospital file without names, a voter list with names, and what links them.

    In 1997 Latanya Sweeney found the Massachusetts governor's record in a hospital file that had been released without
    names, by linking it to the voter list on ZIP, birth date and sex. All people in this demo are synthetic.
    """

    reference = "Sweeney (2002), k-anonymity: a model for protecting privacy, doi:10.1142/S0218488502001648"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        patients, listed = hospital(self.seed), voters(self.seed)
        write(Table(frame=patients), folder / "hospital.csv", force=True)
        write(Table(frame=listed), folder / "voters.csv", force=True)
        recipe = folder / "sfumato.yaml"
        recipe.write_text(RECIPE.format(seed=self.seed), encoding="utf-8")
        say(
            f"\n[bold]1. A hospital has a table of {patients.height:,} patients.[/bold] It removes the names and "
            "publishes ZIP, birth date, sex, day of admission and diagnosis. Anyone can buy the voter list of the "
            f"town: {listed.height:,} names with ZIP, birth date and sex."
        )
        protection = protect(Recipe.load(recipe), progress=progress)
        document = protection.save(folder / "release", force=True)
        before, after = document["attacks_before"][0], document["attacks"][0]
        learned = next(attack for attack in document["attacks"] if attack["attack"] == "attribute-linkage")
        say(
            f"\n[bold]2. An attacker links the two files.[/bold] Of {before['tried']:,} patients who are on the voter "
            f"list, [bold red]{before['risk']:.0%}[/bold red] are found by name, with their diagnosis."
        )
        step = next(step for step in document["steps"] if step["step"] == "generalize")
        record = ", ".join(f"{name} {protection.judged_release.table.column(name)[0]}" for name in step["levels"])
        say(
            "\n[bold]3. The recipe protects the file:[/bold] every patient must look like at least four others. The "
            f"search proves which generalization costs least. A record now reads: {record}. "
            f"{step['suppressed']} records are suppressed, and the day of admission is not released."
        )
        say(
            f"\n[bold]4. The same attack again.[/bold] Now [bold green]{after['risk']:.1%}[/bold green] "
            f"({after['low']:.1%} to {after['high']:.1%}) are found."
        )
        say(
            "\n[bold]5. What is not guaranteed.[/bold] An attacker who knows that a person is in the file and looks "
            f"up their group guesses the diagnosis right in {learned['risk']:.0%} of cases; the most frequent "
            f"diagnosis alone is right in {learned['baseline']:.0%}. k-anonymity hides which record is whose, not what "
            "a group has in common: see [italic]sfumato methods l-diversity[/italic]."
        )
        private, public = (folder / "release-private").resolve(), (folder / "release").resolve()
        say(f"\nThe internal report, for the owner:      {private}/report.html")
        say(f"The external report, for publication:   {public}/report.html")
        say(
            f"Run the attack yourself:  sfumato attack {folder / 'release'} --original {folder / 'hospital.csv'} "
            f"--auxiliary {folder / 'voters.csv'}\n"
        )
        figures: dict[str, object] = {
            "patients": patients.height,
            "voters": listed.height,
            "found_before": before["risk"],
            "found_after": after["risk"],
            "diagnosis_guessed": learned["risk"],
            "diagnosis_baseline": learned["baseline"],
            "report": str(folder / "release-private" / "report.html"),
        }
        return figures
