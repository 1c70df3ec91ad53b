"""Witness: the newest ledger head and the totals of all accounts in a file outside of the database and its backups.

A restored old database does not contain the head that the witness has. The difference of the totals is what the
restored ledger would give back; ``sfumato server restore`` charges it again.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.errors import LedgerRolledBack
from sfumato.ledger.ledger import Ledger

__all__ = ["Witness", "charge_again", "check_witness"]

_HINT = "The operator runs `sfumato server restore`, which charges what is missing."


@dataclass(frozen=True, kw_only=True)
class _Seen:
    number: int
    hash: str
    spent: dict[tuple[str, str], tuple[str, PrivacyLoss]]
    """The unit and the loss, by data set and analyst."""


class Witness:
    """Writes the file at most once in ``seconds``, by a thread of its own, and at the end."""

    def __init__(self, path: Path, ledger: Ledger, *, seconds: float = 1.0) -> None:
        self._path, self._ledger, self._seconds = path, ledger, seconds
        self._totals: dict[tuple[str, str], PrivacyLoss] = {}
        self._units: dict[str, str] = {}
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)

    def start(self) -> None:
        """Check the ledger against the file, then keep the file current."""
        check_witness(self._path, self._ledger)
        self.write()
        self._thread.start()

    def stop(self) -> None:
        """Write a last time and end."""
        self._stop.set()
        self._thread.join(timeout=10)
        self.write()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            self.write()

    def write(self) -> None:
        """Write the present head and totals, if there are new entries."""
        number, digest = self._ledger.head()
        if number == self._number:
            return
        for entry in self._ledger.entries_after(self._number):
            if entry.kind == "spend" and entry.number <= number:
                key, measure = (entry.dataset, entry.analyst), PrivacyMeasure(entry.measure)
                cost = entry.cost()
                self._units.setdefault(entry.dataset, entry.unit)
                self._totals[key] = cost if key not in self._totals else self._totals[key] + cost.to(measure)
        self._number = number
        document = {
            "number": number,
            "hash": digest,
            "spent": [
                [dataset, analyst, self._units[dataset], str(loss.measure), str(loss.size), str(loss.delta)]
                for (dataset, analyst), loss in sorted(self._totals.items())
            ],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)


def check_witness(path: Path, ledger: Ledger) -> None:
    """Refuse a ledger that does not contain the head in the file."""
    seen = _read(path)
    if seen is not None and not ledger.holds(seen.number, seen.hash):
        raise LedgerRolledBack(
            f"The ledger does not contain entry {seen.number}, which was written before: it is an old copy.",
            fix=f"{_HINT} To begin anew with other data, use another state folder. The witness is {path}.",
        )


def charge_again(path: Path, ledger: Ledger, *, by: str) -> dict[tuple[str, str], PrivacyLoss]:
    """Charge what the ledger lacks of the totals in the file, and return it by data set and analyst."""
    seen = _read(path)
    charged: dict[tuple[str, str], PrivacyLoss] = {}
    if seen is None or ledger.holds(seen.number, seen.hash):
        return charged
    for (dataset, analyst), (unit, total) in seen.spent.items():
        spent = ledger.balance(dataset=dataset, analyst=analyst).spent
        size, delta = total.size - spent.size, max(total.delta - spent.delta, Fraction(0))
        if size > 0 or delta > 0:
            lost = PrivacyLoss(measure=total.measure, size=max(size, Fraction(0)), delta=delta)
            about = f"{by}: charged before the restore"
            ledger.carry_over(lost, dataset=dataset, analyst=analyst, unit=unit, about=about)
            charged[dataset, analyst] = lost
    path.unlink()
    return charged


def _read(path: Path) -> _Seen | None:
    if not path.is_file():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    spent = {
        (dataset, analyst): (
            unit,
            PrivacyLoss(measure=PrivacyMeasure(measure), size=Fraction(size), delta=Fraction(delta)),
        )
        for dataset, analyst, unit, measure, size, delta in document["spent"]
    }
    return _Seen(number=document["number"], hash=document["hash"], spent=spent)
