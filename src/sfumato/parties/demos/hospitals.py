"""Demo: five hospitals answer one query. Nobody shows a table, and the noise is that of one curator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.data.yaml_documents import yaml_text
from sfumato.demos.base import Demo, Say
from sfumato.demos.people import hospital
from sfumato.dp.loss import pure
from sfumato.ledger.charge import Charge, charge_run
from sfumato.ledger.ledger import Ledger
from sfumato.parties.bloom_encoding import BloomEncoder
from sfumato.parties.certificates import make_certificates
from sfumato.parties.channels import LocalChannel
from sfumato.parties.coordinator import Coordinator
from sfumato.parties.encoding_attacks import pattern_attack
from sfumato.parties.intersection_size import PrivateSet, SizeNoise
from sfumato.parties.party import Party
from sfumato.parties.party_file import PartyFile
from sfumato.parties.trails import match_trails, rare_trails, suppress_visits
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_NAMES = ("north", "east", "south", "west", "centre")
_DIAGNOSES = ("Asthma", "Hepatitis C", "HIV", "Hypertension", "Pneumonia")
_SQL = "SELECT diagnosis, COUNT(*) AS patients FROM stays GROUP BY diagnosis"


class HospitalsDemo(Demo):
    """Several collectors: five hospitals answer one query together, and only the noisy total becomes known.

    All people in this demo are synthetic.
    """

    reference = (
        "Bonawitz et al. (2017), doi:10.1145/3133956.3133982; Malin, Sweeney (2004), doi:10.1016/j.jbi.2004.04.005"
    )

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        rng = Rng(self.seed)
        patients = hospital(self.seed, patients=6000, town=20_000)
        home = rng.child("home").generator.choice(len(_NAMES), patients.height, p=[0.3, 0.25, 0.2, 0.15, 0.1])
        tables = [patients.filter(pl.Series(home == place)) for place in range(len(_NAMES))]
        parties = self._parties(folder, tables)
        total = self._query(say, parties, patients)
        common = self._common(say, tables)
        named = self._encodings(say, rng, patients)
        trails = self._trails(say, rng)
        say(f"\nThe files of the five parties are in {folder}. Start one:  sfumato party serve {folder / 'north.yaml'}")
        return {"patients": total, "common": common, "names_read": named, **trails}

    def _parties(self, folder: Path, tables: list[pl.DataFrame]) -> dict[str, Party]:
        public = make_certificates(folder / "keys", parties=dict.fromkeys(_NAMES, "localhost"), analysts=["analyst"])
        columns = {"diagnosis": {"kind": "category", "domain": {"values": list(_DIAGNOSES)}}}
        document = {
            "sfumato": 1, "federation": "hospitals", "parties_per_person": 1, "colluding": 1, "min_parties": 4,
            "parties": {
                name: {"address": f"https://localhost:{8441 + place}", "key": public[name]}
                for place, name in enumerate(_NAMES)
            },
            "person": "row", "tables": {"stays": {"columns": columns}},
        }  # fmt: skip
        (folder / "parties.yaml").write_text(yaml_text(document), encoding="utf-8")
        made = {}
        for name, table in zip(_NAMES, tables, strict=True):
            table.write_parquet(folder / f"{name}.parquet")
            own = {
                "sfumato": 1, "party": name, "parties": "parties.yaml", "data": {"stays": f"{name}.parquet"},
                "ledger": f"{name}.db", "key": f"keys/{name}.key", "certificate": f"keys/{name}.crt",
                "authority": "keys/authority.crt",
            }  # fmt: skip
            (folder / f"{name}.yaml").write_text(yaml_text(own), encoding="utf-8")
            (folder / f"{name}.db").unlink(missing_ok=True)
            Ledger.open(folder / f"{name}.db").set_cap(pure(2), dataset="hospitals", why="demo")
            made[name] = PartyFile.load(folder / f"{name}.yaml").open()
        return made

    def _query(self, say: Say, parties: dict[str, Party], patients: pl.DataFrame) -> dict[str, int]:
        agreement = next(iter(parties.values())).agreement
        channels = {name: LocalChannel(party=party, analyst="analyst") for name, party in parties.items()}
        answer = Coordinator(agreement=agreement, channels=channels).ask(_SQL, epsilon="1/2")
        true = dict(patients.group_by("diagnosis").len().iter_rows())
        lines = [
            f"   {row[0].value:<13} true {true.get(row[0].value, 0):>5,}   answered {row[1].value:>5,}"
            for row in answer.rows
        ]
        say(
            "\n[bold]1. One query, five tables.[/bold] Each hospital counts its own patients, adds its share of the "
            "noise and a mask that only cancels in the sum. No hospital and no analyst sees another's counts. "
            f"{answer.cost}\n" + "\n".join(lines)
        )
        return {str(row[0].value): int(row[1].value) for row in answer.rows}

    def _common(self, say: Say, tables: list[pl.DataFrame]) -> int:
        first, second = (table["name"].to_list()[:600] for table in tables[:2])
        both = [*first[:150], *second[150:]]
        one, other = PrivateSet(first), PrivateSet(both)
        noise = SizeNoise.for_budget(1, "1e-6")
        run = Charge.of_run(noise.loss, unit="name", name="intersection", public={})
        paid = charge_run(run, ledger=None, dataset=None)
        found = one.size(other.reply(one.blinded(), noise=noise, receipt=paid))
        say(
            "\n[bold]2. Who is in both?[/bold] 150 of 600 patients were treated in two hospitals. Private set "
            f"intersection finds [bold]{found.size}[/bold] (noise of epsilon 1) and no name."
        )
        return found.size

    def _encodings(self, say: Say, rng: Rng, patients: pl.DataFrame) -> dict[str, float]:
        families = [name.rsplit(" ", 1)[1] for name in patients["name"].to_list()]
        draw = rng.child("names").generator
        common = sorted(set(families))
        weights = 1 / np.arange(1, len(common) + 1)
        names = list(draw.choice(common, 2000, p=weights / weights.sum()))
        public = list(draw.choice(common, 20_000, p=weights / weights.sum()))
        years = [str(year) for year in draw.integers(1920, 1996, len(names))]
        classic, hardened = BloomEncoder(key=b"shared secret"), BloomEncoder(key=b"shared secret", flip="0.05")
        read = {
            "keyed": pattern_attack(classic.encode(names), public).right(names),
            "hardened": pattern_attack(hardened.encode(names, years), public).right(names),
        }
        say(
            "\n[bold]3. Linkage with encoded names.[/bold] Health registers exchange names as keyed Bloom filters. An "
            f"attacker without the key, with a public list of names, reads [bold]{read['keyed']:.0%}[/bold] of 2,000 "
            f"records. Salted by year of birth and with flipped bits: {read['hardened']:.0%} (always guessing the most "
            f"frequent name: {max(map(names.count, set(names))) / len(names):.0%})."
        )
        return read

    def _trails(self, say: Say, rng: Rng) -> dict[str, object]:
        draw = rng.child("trails").generator
        visits = draw.random((800, 10)) < 0.25
        owners = draw.permutation(len(visits))
        matches = match_trails(visits, visits[owners], complete=True)
        kept = suppress_visits(visits[owners], k=5)
        say(
            "\n[bold]4. Trails.[/bold] Ten hospitals publish DNA samples without names, and lists of patients without "
            f"samples. The set of hospitals links [bold]{len(matches.pairs)}[/bold] of 800 samples to a name, "
            f"{matches.right(owners.tolist())} of them rightly. Leaving out {kept.suppressed} of {int(visits.sum())} "
            f"visits of the samples links {len(match_trails(visits, kept.visits, complete=False).pairs)}."
        )
        return {
            "unique_trails": rare_trails(visits, k=2), "linked": len(matches.pairs), "suppressed": kept.suppressed,
        }  # fmt: skip
