"""One party: answers a question about its own table with masked noisy numbers, and keeps its own ledger.

A question takes two messages. :meth:`Party.join` plans it and returns a signed key; it reads no data and costs nothing.
:meth:`Party.contribute` learns who else takes part, charges the ledger, computes the bounded aggregates, adds its share
of the noise and the masks, and returns the result, once. Whatever happens later, the ledger has charged for it.

Where parties may stop in between there are two more: :meth:`Party.deal` hands out shares of the masks before anything
is charged, and :meth:`Party.unmask` reveals, once, those that open the sum of the parties that contributed.

Private keys, extremes, quantiles and modes take :meth:`Party.compute` instead of a contribution: many messages, in one
go.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sfumato.dp.mechanisms.laplace import Laplace
from sfumato.dp.noise_shares import laplace_shares
from sfumato.dp.receipt import Receipt, require
from sfumato.engines.engine import failed
from sfumato.errors import BadParameter, OverBudget, PartyFailed, QueryRefused, TooManyRequests, UnknownBudget
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.parties.agreement import Agreement, Tolerance
from sfumato.parties.mask_recovery import Dealt, deal, receive
from sfumato.parties.planning import PartiesPlan, plan_question
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.residues import Residues, add, from_integers
from sfumato.parties.sealed_exchange import SealedExchange
from sfumato.parties.secure_sum import (
    Announcement,
    OpenRound,
    check_announcements,
    open_round,
    transcript,
)
from sfumato.parties.shared_computation import SharedComputation
from sfumato.query.execute.executor import check_plan, exact_vectors, shared_measurements
from sfumato.query.execute.timing import quantize_response
from sfumato.query.options import check_min_epsilon
from sfumato.query.session import Session

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_MOST_OPEN = 16
"""Questions of one analyst that wait for their second message."""
_SECONDS = 300.0
"""How long a party waits for the second message of a question."""


@dataclass(frozen=True, kw_only=True)
class _Joined:
    question: PartiesQuestion
    plan: PartiesPlan
    round: OpenRound
    analyst: str
    until: float
    dealt: Dealt | None = None
    """Set when shares of the masks were handed out."""
    received: Mapping[str, tuple[bytes, bytes]] | None = None
    """Other parties' shares; set when this party contributed and the sum is not opened yet."""


class Party:
    """One party of an agreement with its open tables, its ledger and its key.

    ``account`` is the data set and the privacy unit that answers are charged to; the federation if left out.
    """

    def __init__(
        self,
        *,
        name: str,
        agreement: Agreement,
        session: Session,
        identity: Ed25519PrivateKey,
        account: tuple[str, str] | None = None,
        response_interval: float | None = None,
    ) -> None:
        if name not in agreement.parties:
            raise BadParameter(f"the parties file does not name party `{name}`.")
        if identity.public_key().public_bytes_raw() != agreement.keys[name]:
            raise BadParameter(f"the key of party `{name}` is not the one in the parties file.")
        self.name, self.agreement = name, agreement
        self._session, self._identity, self._response_interval = session, identity, response_interval
        self._dataset, self._unit = account or (agreement.federation, session.catalog.unit)
        self._digest = agreement.digest(session.catalog)
        self._joined: dict[str, _Joined] = {}
        self._lock = threading.Lock()
        self._running = threading.Lock()

    @property
    def ledger(self) -> Ledger:
        return self._session.ledger

    def join(self, question: PartiesQuestion, *, analyst: str) -> Announcement:
        """Plan a question and announce a key for it. Refusals depend on public facts and on the budget only."""
        if question.agreement != self._digest:
            raise QueryRefused(
                f"Party {self.name} has another parties file.", fix="Give all parties and the analyst the same file."
            )
        plan = plan_question(self.agreement, self._session.catalog, question)
        with self._running:
            check_plan(plan.noise, self._session.running)
        check_min_epsilon(plan.cost, self._session.min_epsilon)
        self._check_budget(plan, analyst)
        digest = question.digest()
        opened = open_round(self.name, self._identity, question=digest, plan=plan.digest)
        joined = _Joined(question=question, plan=plan, round=opened, analyst=analyst, until=time.monotonic() + _SECONDS)
        with self._lock:
            now = time.monotonic()
            self._joined = {key: each for key, each in self._joined.items() if each.until > now}
            if digest in self._joined:
                raise QueryRefused("This question was asked before.", fix="Ask again with a new nonce.")
            if sum(each.analyst == analyst for each in self._joined.values()) >= _MOST_OPEN:
                raise TooManyRequests(
                    f"{_MOST_OPEN} questions of this analyst wait for their second message.", fix="Try again later."
                )
            self._joined[digest] = joined
        return opened.announcement

    def deal(self, digest: str, announcements: Sequence[Announcement], *, analyst: str) -> dict[str, bytes]:
        """Sealed shares of this party's masks, one message for each other party. Costs nothing."""
        joined = self._taken(digest, analyst)
        if joined.dealt is not None:
            raise QueryRefused("The shares of this question were handed out before.", fix="Ask again.")
        tolerance = self._checked_round(joined, announcements)
        if not tolerance.dropouts:
            raise QueryRefused("The parties file does not allow for parties that stop.", fix="Contribute at once.")
        dealt, sealed = deal(joined.round, announcements, tolerance.threshold)
        self._kept(digest, replace(joined, dealt=dealt))
        return sealed

    def contribute(
        self,
        digest: str,
        announcements: Sequence[Announcement],
        sealed: Mapping[str, bytes] | None = None,
        *,
        analyst: str,
    ) -> Residues:
        """The party's masked noisy numbers for a question that it joined; a question is contributed to once.

        ``sealed`` has the shares that the other parties dealt to this one, where parties may stop.
        """
        with quantize_response(self._response_interval):
            joined = self._taken(digest, analyst)
            if joined.received is not None:
                raise QueryRefused("This party contributed to the question before.", fix="Ask again.")
            if joined.plan.program is not None:
                raise QueryRefused("The parties compute this answer together.", fix="Use the same version everywhere.")
            tolerance = self._checked_round(joined, announcements)
            mask = joined.round.mask(joined.plan.size, announcements)
            if tolerance.dropouts:
                if joined.dealt is None or set(joined.dealt.announcements) != set(announcements):
                    raise QueryRefused("The shares of the masks were dealt for another round.", fix="Ask again.")
                joined = replace(joined, received=receive(joined.round, joined.dealt, sealed or {}))
                mask = add(mask, joined.dealt.mask(joined.plan.size))  # type: ignore[union-attr]
            receipt = self._charged(joined)
            try:
                masked = add(self._noisy(joined.plan, tolerance, receipt), mask)
            except Exception:
                # The reason is withheld: it could depend on the data.
                self.ledger.note_failure(receipt.entry)
                raise failed() from None
            if joined.received is not None:
                self._kept(digest, joined)
            return masked

    def compute(
        self, digest: str, announcements: Sequence[Announcement], transfer: Callable[[bytes], bytes], *, analyst: str
    ) -> bytes:
        """The party's shares of the result of a computation with the others, for a question that it joined; once.

        ``transfer`` sends a frame of sealed messages to the coordinator and returns the next one. The ledger has
        charged before the first.
        """
        with quantize_response(self._response_interval):
            joined = self._taken(digest, analyst)
            program = joined.plan.program
            if program is None:
                raise QueryRefused(
                    "This question is answered by contributions.", fix="Use the same version everywhere."
                )
            self._checked_round(joined, announcements)
            exchange = SealedExchange(joined.round, announcements, transfer)
            receipt = self._charged(joined)
            try:
                require(receipt, joined.plan.cost)
                with self._running:
                    exact = program.exact(joined.plan.noise, self._session.running, receipt).open(receipt)
                prepared: Any = program.prepared(exact, salt=transcript(announcements))
            except Exception:
                # The reason is withheld: it could depend on the data.
                self.ledger.note_failure(receipt.entry)
                raise failed() from None
        parties = len(announcements)
        try:
            computation = SharedComputation(place=exchange.place, parties=parties, exchange=exchange)
            return program.run(computation, prepared, noise_shares=parties - self.agreement.colluding)
        except (PartyFailed, QueryRefused):
            raise  # about other parties, or about the lengths of the lists, which are public
        except Exception:
            self.ledger.note_failure(receipt.entry)
            raise failed() from None

    def unmask(self, digest: str, survivors: Sequence[str], *, analyst: str) -> dict[str, bytes]:
        """One share about each party of the round: of the self-mask of a survivor, of the key of one that stopped.

        Never both: whoever has both could read a message on its own. It is answered once.
        """
        joined = self._taken(digest, analyst)
        if joined.received is None or joined.dealt is None:
            raise QueryRefused("This party has not contributed to the question.", fix="Ask again.")
        names, count = set(survivors), len(joined.dealt.announcements)
        least = count - self.agreement.tolerance(count).dropouts
        if len(names) < len(survivors) or not names <= set(joined.dealt.names) or self.name not in names:
            raise QueryRefused("The list of parties that contributed does not fit the round.", fix="Ask again.")
        if len(names) < least:
            raise QueryRefused(f"At least {least} parties of the round must have contributed.", fix="Ask again.")
        return {name: shares[0 if name in names else 1] for name, shares in joined.received.items()}

    def _charged(self, joined: _Joined) -> Receipt:
        charge = Charge(
            loss=joined.plan.cost, unit=self._unit, what=joined.question.sql, key=joined.question.digest()
        )  # fmt: skip
        return self.ledger.charge(charge, dataset=self._dataset, analyst=joined.analyst)

    def _taken(self, digest: str, analyst: str) -> _Joined:
        """An open question, which is no longer open then: every step happens once."""
        with self._lock:
            joined = self._joined.pop(digest, None)
        if joined is None or joined.until < time.monotonic() or joined.analyst != analyst:
            raise QueryRefused("There is no open question of this analyst with this number.", fix="Ask again.")
        return joined

    def _kept(self, digest: str, joined: _Joined) -> None:
        with self._lock:
            self._joined[digest] = replace(joined, until=time.monotonic() + _SECONDS)

    def _checked_round(self, joined: _Joined, announcements: Sequence[Announcement]) -> Tolerance:
        if not self.agreement.fewest <= len(announcements) <= len(self.agreement.parties):
            raise QueryRefused(
                f"An answer needs at least {self.agreement.fewest} parties.", fix="Ask when more of them are there."
            )
        check_announcements(
            announcements, keys=self.agreement.keys, question=joined.question.digest(), plan=joined.plan.digest
        )
        if joined.round.announcement not in announcements:
            raise QueryRefused(f"The round does not contain the key that party {self.name} announced.")
        return self.agreement.tolerance(len(announcements))

    def _noisy(self, plan: PartiesPlan, tolerance: Tolerance, receipt: Receipt) -> Residues:
        """The bounded totals with this party's share of the noise."""
        require(receipt, plan.cost)
        with self._running:
            vectors = exact_vectors(plan.noise, self._session.running, receipt).open(receipt)
        numbers: list[int] = []
        for measurement, exact in zip(shared_measurements(plan.noise), vectors, strict=True):
            mechanism = measurement.mechanism
            assert isinstance(mechanism, Laplace)
            noise = laplace_shares(mechanism.steps(), tolerance.noise_shares, len(exact))
            numbers += [int(value) + int(drawn) for value, drawn in zip(exact, noise, strict=True)]
        if len(numbers) != plan.size:
            raise AssertionError("the numbers do not fit the plan")
        return from_integers(numbers)

    def _check_budget(self, plan: PartiesPlan, analyst: str) -> None:
        """Refuse before anybody else is charged; the charge itself is checked again."""
        dataset, ledger = self._dataset, self._session.ledger
        if ledger.balance(dataset=dataset, unit=self._unit).cap is None:
            raise UnknownBudget(
                f"Party {self.name} has set no budget for `{dataset}`.", fix="Its owner calls `sfumato ledger cap`."
            )
        for name, person in ((dataset, ""), (dataset, analyst), ("", analyst)):
            left = ledger.balance(dataset=name, analyst=person, unit=self._unit).left
            if left is not None and not plan.cost <= left:
                raise OverBudget(
                    f"The budget of party {self.name} does not cover {plan.cost}.",
                    fix="Its owner calls `sfumato ledger cap`, with a delta for private keys.",
                )
