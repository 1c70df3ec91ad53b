"""Register of what left: every release, table, model, survey and session about the people of a data set.

A record is an entry of the ledger's hash chain, written before the folder or file takes its place: what left is
registered, and a crash in between leaves a record of something that did not leave. A run that was charged and has no
record shows as :data:`NOTHING_REGISTERED`. Answers to questions are entries of their own and are summed up by analyst.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.dp.loss import PrivacyLoss
from sfumato.ledger.charge import OWNER, RUN

if TYPE_CHECKING:
    from sfumato.ledger.entries import Entry
    from sfumato.ledger.ledger import Ledger
from sfumato.wording import counted

REGISTERED = "left"
NOTHING_REGISTERED = "charged, nothing registered"
ANSWERED = "answered"


@dataclass(frozen=True, kw_only=True)
class ReleaseRecord:
    """What left, how it was made and judged, and why: no value of the data."""

    kind: str
    """``microdata``, ``graph``, ``tables``, ``model`` or ``survey``."""
    name: str
    """Its name: that of the folder or file."""
    sha256: str
    """Fingerprint of what left (:func:`fingerprint`)."""
    plan: str
    """Fingerprint of the plan that it was made by."""
    verdicts: tuple[str, ...] = ()
    """Each as ``model: state``."""
    why: str = ""
    """The purpose that the plan states."""
    charges: tuple[int, ...] = ()
    """The entries of the ledger that paid for it; none without a guarantee."""

    def to_text(self) -> str:
        """As JSON, for an entry of the ledger."""
        plain = {**vars(self), "verdicts": list(self.verdicts), "charges": list(self.charges)}
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> ReleaseRecord:
        """The record that :meth:`to_text` wrote."""
        plain = json.loads(text)
        return cls(**{**plain, "verdicts": tuple(plain["verdicts"]), "charges": tuple(plain["charges"])})


@dataclass(frozen=True, kw_only=True)
class RegisterLine:
    """One line of the register: something that left, or the answers that one analyst was given."""

    dataset: str
    kind: str
    state: str
    at: str
    """When it left; for answers, the last one."""
    who: str
    entry: int
    unit: str = ""
    loss: PrivacyLoss | None = None
    """What was charged for it; None without a guarantee."""
    name: str = ""
    sha256: str = ""
    plan: str = ""
    verdicts: tuple[str, ...] = ()
    why: str = ""
    answers: int = 0
    """Number of charged questions."""
    bounds: str = ""
    """How contributions were bounded, and who says so."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        loss = None if self.loss is None else self.loss.to_dict()
        return {**vars(self), "loss": loss, "verdicts": list(self.verdicts)}

    def __str__(self) -> str:
        answers = counted(self.answers, "answer") if self.answers else f"answers under the policy {self.name}"
        what = answers if self.kind == "answers" else f"{self.kind} {self.name}".strip()
        cost = "no charge" if self.loss is None else f"{self.loss} for one {self.unit}"
        parts = [f"{self.at[:10]} {self.dataset}: {what}".strip(), *([self.state] if self.kind != "answers" else [])]
        parts += [f"by {self.who}"] if self.who else []
        return "; ".join([*parts, cost, *self.verdicts, *([f"for: {self.why}"] if self.why else [])])


def recorder(
    *,
    ledger: Ledger | str | Path | None,
    dataset: str | None,
    kind: str,
    name: str,
    plan: object,
    verdicts: Iterable[Mapping[str, object]] = (),
    why: str = "",
    charges: Sequence[int] = (),
    by: str = OWNER,
) -> Callable[[Path], None] | None:
    """What a writer of public folders and files calls with the finished path, before it takes its place.

    None where no ledger is named: then nobody keeps a register.
    """
    if ledger is None or dataset is None:
        return None
    from sfumato.data.atomic import path_digest
    from sfumato.ledger.ledger import Ledger

    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    text = json.dumps(plan, sort_keys=True, default=str)
    judged = tuple(f"{verdict['model']}: {verdict['state']}" for verdict in verdicts)

    def record(path: Path) -> None:
        book.register(
            ReleaseRecord(
                kind=kind, name=name, sha256=path_digest(path), plan=hashlib.sha256(text.encode()).hexdigest(),
                verdicts=judged, why=why, charges=tuple(charges),
            ),
            dataset=dataset,
            by=by,
        )  # fmt: skip

    return record


def register(ledger: Ledger, *, dataset: str | None = None) -> tuple[RegisterLine, ...]:
    """What left about the people of a data set, or of all data sets, in the order of its last entry."""
    entries = [entry for entry in ledger.entries() if dataset in (None, entry.dataset)]
    charged = {entry.number: entry for entry in entries if entry.kind == "spend"}
    records = [(entry, ReleaseRecord.from_text(entry.about)) for entry in entries if entry.kind == "release"]
    paid = {number for _, record in records for number in record.charges}
    lines = [_left(entry, record, charged) for entry, record in records]
    answers: dict[tuple[str, str], list[Entry]] = {}
    for number, entry in charged.items():
        if not entry.about.startswith(RUN):
            answers.setdefault((entry.dataset, entry.analyst), []).append(entry)
        elif number not in paid:
            lines.append(_line(entry, kind=entry.about.removeprefix(RUN).rpartition(" ")[0], state=NOTHING_REGISTERED))
    for name, policy in _policies(ledger):
        if dataset in (None, name):
            lines.append(
                RegisterLine(dataset=name, kind="answers", state=ANSWERED, at="", who="", entry=0, name=policy)
            )
    for (name, analyst), given in answers.items():
        spent = ledger.balance(dataset=name, analyst=analyst).spent
        lines.append(_line(given[-1], kind="answers", state=ANSWERED, answers=len(given), loss=spent))
    return tuple(sorted(lines, key=lambda line: line.entry))


def _policies(ledger: Ledger) -> list[tuple[str, str]]:
    """Data sets that a policy other than differential privacy answered about, with that policy."""
    from sfumato.ledger.policy_tables import POLICY_TABLES

    with ledger.store.write() as transaction:
        transaction.query(POLICY_TABLES)
        rows = transaction.query("SELECT DISTINCT dataset, policy FROM sfumato_policy_tables WHERE asked = 1")
    return sorted({(str(dataset), _policy_name(str(policy))) for dataset, policy in rows})


def _policy_name(recorded: str) -> str:
    """The name of a policy, from what it was recorded with: its name with its rules, and what it depends on."""
    if not recorded.startswith("{"):
        return "of another ledger"
    return next((name for name in json.loads(recorded) if name not in ("columns", "public")), "")


def _left(entry: Entry, record: ReleaseRecord, charged: Mapping[int, Entry]) -> RegisterLine:
    """The line of a record, with what was charged for it."""
    paid = [charged[number] for number in record.charges]
    loss, unit, bounds = (paid[0].cost(), paid[0].unit, paid[0].bounds) if paid else (None, "", "")
    for more in paid[1:]:
        loss = more.cost() if loss is None else loss + more.cost()
    return RegisterLine(
        dataset=entry.dataset, kind=record.kind, state=REGISTERED, at=entry.at, who=entry.analyst, entry=entry.number,
        unit=unit, loss=loss, name=record.name, sha256=record.sha256, plan=record.plan, verdicts=record.verdicts,
        why=record.why, bounds=bounds,
    )  # fmt: skip


def _line(entry: Entry, *, kind: str, state: str, answers: int = 0, loss: PrivacyLoss | None = None) -> RegisterLine:
    """The line of a charge."""
    return RegisterLine(
        dataset=entry.dataset, kind=kind, state=state, at=entry.at, who=entry.analyst, entry=entry.number,
        unit=entry.unit, loss=loss or entry.cost(), bounds=entry.bounds, answers=answers,
    )  # fmt: skip
