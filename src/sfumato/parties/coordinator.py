"""The coordinator: sends an analyst's question to all parties and adds up what they return.

It needs no trust: it sees signed keys and masked numbers, of which only the sum of all means something, and that sum
has the noise that the cost states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Protocol, TypeVar

from sfumato.errors import BadParameter, PartyFailed, SfumatoError
from sfumato.parties.agreement import Agreement, Tolerance
from sfumato.parties.mask_recovery import open_sum
from sfumato.parties.planning import PartiesPlan, plan_question
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.residues import Residues, add, to_integers
from sfumato.parties.sealed_exchange import redistributed
from sfumato.parties.secure_sum import Announcement, check_announcements
from sfumato.parties.selections import in_units
from sfumato.parties.streams import MESSAGES, RESULT, PartyStream
from sfumato.query.execute.executor import NoisyTable, public_groups, shared_measurements, shared_size, split_parts
from sfumato.query.options import FIT_SHARE
from sfumato.query.results.answer import Answer, answer_rows, column_titles
from sfumato.query.results.explain import Explanation, explain
from sfumato.query.results.kept import kept_share, limits_of
from sfumato.rationals import Number

Reply = TypeVar("Reply")
_AT_ONCE = 32


class PartyChannel(Protocol):
    """The way to one party. A party that cannot be reached, or whose reply is no reply, raises ``PartyFailed``."""

    def join(self, question: PartiesQuestion) -> Announcement: ...

    def deal(self, digest: str, announcements: Sequence[Announcement]) -> dict[str, bytes]: ...

    def contribute(
        self, digest: str, announcements: Sequence[Announcement], sealed: Mapping[str, bytes], size: int
    ) -> Residues: ...

    def unmask(self, digest: str, survivors: Sequence[str]) -> dict[str, bytes]: ...

    def compute(self, digest: str, announcements: Sequence[Announcement]) -> PartyStream: ...


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """Asks the parties of an agreement."""

    agreement: Agreement
    channels: Mapping[str, PartyChannel]

    @classmethod
    def of_file(cls, path: Path, *, identity: Path) -> Coordinator:
        """The parties of an agreement, asked over HTTPS in the name of a certificate; its key lies beside it."""
        from sfumato.parties.certificates import client_context
        from sfumato.parties.channels import https_channels

        agreement = Agreement.load(path)
        tls = client_context(
            certificate=identity, key=identity.with_suffix(".key"), authority=identity.with_name("authority.crt")
        )
        return cls(agreement=agreement, channels=https_channels(agreement, tls))

    def explain(
        self,
        sql: str,
        *,
        epsilon: Number,
        delta: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
        fit: Number = FIT_SHARE,
    ) -> Explanation:
        """The cost and the expected error with all parties. Asks nobody and costs nothing."""
        _, plan = self._planned(sql, epsilon, delta, rows, groups, fit)
        return self._explanation(plan, self._tolerance(plan, len(self.agreement.parties)))

    def ask(
        self,
        sql: str,
        *,
        epsilon: Number,
        delta: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
        fit: Number = FIT_SHARE,
        attempts: int = 1,
    ) -> Answer:
        """The noisy total over all parties.

        Parties that do not answer before anything is charged are left out if enough others are there. Of those that
        stop later, ``dropouts`` of the parties file do not end the question: the total is that of the others. If more
        stop, nothing can be read, and the others have charged for it. With more ``attempts`` the question is then asked
        again without them, as a new question at its full cost.
        """
        if attempts < 1:
            raise BadParameter("at least one attempt is needed.")
        absent: set[str] = set()
        charged = 0
        while True:
            question, plan = self._planned(sql, epsilon, delta, rows, groups, fit)
            joined = self._joined(question, plan, absent, charged=charged > 0)
            tolerance = self.agreement.tolerance(len(joined))
            if plan.program is not None:
                charged += 1
                shares = self._computed(question, joined)
                if isinstance(shares, list):
                    table = plan.program.table(plan.noise, shares)
                    return self._answer(plan, table, sorted(joined), self._tolerance(plan, len(joined)), charged)
                stopped = shares
                absent |= set(stopped)
                if charged >= attempts or len(self.agreement.parties) - len(absent) < self.agreement.fewest:
                    break
                continue
            sealed, silent = self._dealt(question, joined) if tolerance.dropouts else ({}, set())
            if silent:  # nothing is charged yet
                absent |= silent
                continue
            charged += 1
            replies = self._contributions(question, plan, joined, sealed)
            stopped = {name: reply for name, reply in replies.items() if isinstance(reply, SfumatoError)}
            if len(stopped) <= tolerance.dropouts:
                masked = {name: reply for name, reply in replies.items() if not isinstance(reply, SfumatoError)}
                total = reduce(add, masked.values())
                if not tolerance.dropouts:
                    return self._answer(plan, _table(plan, total), sorted(masked), tolerance, charged)
                opened = self._opened(question, joined, total, masked, tolerance)
                if not isinstance(opened, dict):
                    return self._answer(plan, _table(plan, opened), sorted(masked), tolerance, charged)
                stopped |= opened
            absent |= set(stopped)
            if charged >= attempts or len(self.agreement.parties) - len(absent) < self.agreement.fewest:
                break
        raise PartyFailed(
            f"{_listed(stopped)} did not contribute. No answer can be computed, and parties that did have charged for "
            f"it. {_reasons(stopped)}",
            fix="Ask again, or pass more `attempts`: each is charged in full.",
        )

    def _planned(
        self, sql: str, epsilon: Number, delta: Number | None, rows: int | None, groups: int | None, fit: Number
    ) -> tuple[PartiesQuestion, PartiesPlan]:  # fmt: skip
        catalog = self.agreement.catalog()
        question = PartiesQuestion.new(
            sql, agreement=self.agreement.digest(catalog), epsilon=str(epsilon), delta=delta or 0, rows=rows,
            groups=groups, fit=fit,
        )  # fmt: skip
        return question, plan_question(self.agreement, catalog, question)

    def _joined(
        self, question: PartiesQuestion, plan: PartiesPlan, absent: set[str], *, charged: bool
    ) -> dict[str, Announcement]:
        """The announcements of the parties that take part. A refusal of one party ends the question at no cost."""
        present = [name for name in self.agreement.parties if name not in absent]
        replies = self._all(present, lambda name: self.channels[name].join(question))
        missing = {name: reply for name, reply in replies.items() if isinstance(reply, PartyFailed)}
        for name, reply in replies.items():
            if isinstance(reply, SfumatoError) and name not in missing:
                raise reply
        joined = {name: reply for name, reply in replies.items() if isinstance(reply, Announcement)}
        missing |= {name: PartyFailed(f"Party {name} stopped.") for name in absent}
        if len(joined) < self.agreement.fewest:
            raise PartyFailed(
                f"{_listed(missing)} cannot be reached, and an answer needs {self.agreement.fewest} parties. "
                f"{'The attempts before were' if charged else 'Nothing was'} charged. {_reasons(missing)}",
                fix="Ask when they are there.",
            )
        if any(each.party != name for name, each in joined.items()):
            raise PartyFailed("A party announced itself under another name.")
        check_announcements(
            list(joined.values()), keys=self.agreement.keys, question=question.digest(), plan=plan.digest
        )
        return joined

    def _dealt(
        self, question: PartiesQuestion, joined: Mapping[str, Announcement]
    ) -> tuple[dict[str, dict[str, bytes]], set[str]]:
        """The sealed shares for each party, and the parties that dealt none."""
        digest, said = question.digest(), list(joined.values())
        replies = self._all(joined, lambda name: self.channels[name].deal(digest, said))
        dealt = {name: reply for name, reply in replies.items() if not isinstance(reply, SfumatoError)}
        whole = {name for name, reply in dealt.items() if set(reply) == set(joined) - {name}}
        sealed = {name: {one: dealt[one][name] for one in whole if one != name} for name in joined}
        return sealed, set(joined) - whole

    def _contributions(
        self,
        question: PartiesQuestion,
        plan: PartiesPlan,
        joined: Mapping[str, Announcement],
        sealed: Mapping[str, Mapping[str, bytes]],
    ) -> dict[str, Residues | SfumatoError]:
        digest, said = question.digest(), list(joined.values())
        return self._all(
            joined, lambda name: self.channels[name].contribute(digest, said, sealed.get(name, {}), plan.size)
        )

    def _opened(
        self,
        question: PartiesQuestion,
        joined: Mapping[str, Announcement],
        total: Residues,
        masked: Mapping[str, Residues],
        tolerance: Tolerance,
    ) -> Residues | dict[str, SfumatoError]:
        """The sum without the masks that are left in it, or the parties that stopped before it could be opened."""
        digest, survivors = question.digest(), sorted(masked)
        replies = self._all(survivors, lambda name: self.channels[name].unmask(digest, survivors))
        revealed, stopped = {}, {}
        for name, reply in replies.items():
            if isinstance(reply, SfumatoError):
                stopped[name] = reply
            elif set(reply) == set(joined):
                revealed[name] = reply
            else:
                stopped[name] = PartyFailed(f"Party {name} sent something that is no reply.")
        if len(revealed) < tolerance.threshold:
            return stopped
        said = list(joined.values())
        return open_sum(
            total, announcements=said, survivors=survivors, revealed=revealed, threshold=tolerance.threshold
        )

    def _computed(
        self, question: PartiesQuestion, joined: Mapping[str, Announcement]
    ) -> list[bytes] | dict[str, SfumatoError]:
        """Each party's shares of the result, in the order of their names, or the party that stopped."""
        digest, said, names = question.digest(), list(joined.values()), sorted(joined)
        with ExitStack() as open_streams:
            streams: dict[str, PartyStream] = {}
            name = ""
            try:
                for name in names:
                    streams[name] = self.channels[name].compute(digest, said)
                    open_streams.callback(streams[name].close)
                while True:
                    frames = {}
                    for name in names:
                        frames[name] = streams[name].receive()
                    kinds = {kind for kind, _ in frames.values()}
                    if kinds == {RESULT}:
                        return [content for _, content in frames.values()]
                    if kinds != {MESSAGES}:
                        raise PartyFailed("The parties are not at the same step of the computation.")
                    following = redistributed({name: content for name, (_, content) in frames.items()})
                    for name in names:
                        streams[name].send(following[name])
            except SfumatoError as error:
                return {name: error}

    def _tolerance(self, plan: PartiesPlan, count: int) -> Tolerance:
        """No party of a computation on shares may stop."""
        tolerance = self.agreement.tolerance(count)
        return tolerance if plan.program is None else replace(tolerance, agreed=0)

    @staticmethod
    def _all(
        names: Sequence[str] | Mapping[str, object], call: Callable[[str], Reply]
    ) -> dict[str, Reply | SfumatoError]:
        def one(name: str) -> Reply | SfumatoError:
            try:
                return call(name)
            except SfumatoError as error:
                return error

        with ThreadPoolExecutor(min(_AT_ONCE, len(names))) as pool:
            return dict(zip(names, pool.map(one, names), strict=True))

    def _answer(
        self, plan: PartiesPlan, table: NoisyTable, parties: Sequence[str], tolerance: Tolerance, attempts: int
    ) -> Answer:
        reported = plan.reported(len(parties), tolerance.noise_shares)
        kept = kept_share(reported, table)
        return Answer(
            columns=column_titles(plan.noise.query),
            rows=answer_rows(reported, table),
            kept=kept,
            limits=limits_of(reported, kept),
            loss=plan.cost.times(attempts),
            cached=False,
            explanation=self._explanation(plan, tolerance, parties),
        )

    def _explanation(self, plan: PartiesPlan, tolerance: Tolerance, parties: Sequence[str] = ()) -> Explanation:
        count = len(parties) or tolerance.parties
        made = explain(plan.reported(count, tolerance.noise_shares))
        who = f"Total over {count} parties" + (f": {', '.join(parties)}." if 0 < len(parties) <= 20 else ".")
        colluding = self.agreement.colluding
        trust = (
            f"The noise protects even if {colluding} of them share what they know with the analyst."
            if colluding
            else "The noise protects as long as none of them shares what it knows with the analyst."
        )
        notes = (*made.notes, *(() if plan.program is None else plan.program.notes), who, trust)
        return replace(made, notes=notes)


def _table(plan: PartiesPlan, total: Residues) -> NoisyTable:
    """The noisy numbers of an opened sum."""
    totals, keys = to_integers(total), public_groups(plan.noise.query)
    assert keys is not None
    values: dict[int, tuple[float | int, ...]] = {}
    for measurement in shared_measurements(plan.noise):
        size = shared_size(plan.noise, measurement)
        own, totals = totals[:size], totals[size:]
        values |= split_parts(measurement, in_units(own, measurement.mechanism))
    return NoisyTable(keys=keys, values=values)


def _listed(names: Mapping[str, object]) -> str:
    some = sorted(names)
    more = f" and {len(some) - 5} more" if len(some) > 5 else ""
    return f"Part{'y' if len(some) == 1 else 'ies'} {', '.join(some[:5])}{more}"


def _reasons(errors: Mapping[str, SfumatoError]) -> str:
    return " ".join(sorted({error.message for error in errors.values()})[:3])
