"""Differential privacy guarantee of a release: its loss, whose privacy, what is covered, what is not, and the proof.

Synthetic tables, item counts, tables of counts, graph statistics and fitted models state the same :class:`Guarantee`;
manifests, model files and reports write it by :meth:`Guarantee.to_dict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from math import exp
from statistics import NormalDist
from typing import Any

from sfumato.dp.contribution_bounds import Bounds, Promised
from sfumato.dp.curve import Curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate
from sfumato.dp.receipt import UNKEPT_COST, Receipt
from sfumato.dp.spending import RunAccount
from sfumato.errors import BadParameter
from sfumato.release.verdict import State, Verdict
from sfumato.wording import counted

MODEL = "differential-privacy"
ALL_ROWS = "add or remove all rows of one unit"
_COVERED = (
    "everything that is released here and everything computed from it",
    "any attack, also one that nobody has thought of",
    "any attacker, whatever they know beside it, even all other units",
)
_NOT_COVERED = (
    "conclusions about groups, which apply to people who are not in the data as well",
    "figures that were measured on the original: they stay with the owner",
)


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """A guarantee of differential privacy, as it is published.

    >>> from sfumato.dp.loss import approximate
    >>> stated = Guarantee(loss=approximate(1, "1e-6"), unit="patient", max_rows=3, proof="Dwork et al. 2006")
    >>> print(stated)  # doctest: +NORMALIZE_WHITESPACE
    (1, 1e-06)-differential privacy for one patient, at most 3 rows each (add or remove all rows of one unit); no
    ledger: this run's cost is not added to that of others.
    """

    loss: PrivacyLoss
    """Epsilon and delta, to the precision of a floating-point number, and the curve where it is known."""
    unit: str
    """Whose privacy: ``row``, ``edge``, ``node``, or the column that identifies a person."""
    proof: str
    """Mechanisms, theorems and where they are proved."""
    max_rows: int = 1
    """The largest number of rows of one unit that are used."""
    neighbours: str = ALL_ROWS
    """Two inputs whose outputs cannot be told apart."""
    covered: tuple[str, ...] = _COVERED
    not_covered: tuple[str, ...] = _NOT_COVERED
    dataset: str | None = None
    """The data set of the ledger that was charged."""
    entry: int | None = None
    """The entry of the ledger; None if no ledger was named."""
    ledger: str = field(default="", compare=False, repr=False)
    """Where the ledger is, so that what leaves is recorded in it. It is never published."""
    account: RunAccount | None = field(default=None, compare=False, repr=False)
    """What the certificate is made from, which covers what was drawn until then."""
    stated: Mapping[str, object] | None = field(default=None, compare=False, repr=False)
    """The certificate as it was read from a file."""
    parameters: Mapping[str, str | int | float | Sequence[str]] = field(default_factory=dict)
    """Public parameters of the mechanism that a reader needs, such as thresholds."""

    def __post_init__(self) -> None:
        if self.loss.measure is not PrivacyMeasure.EPSILON:
            raise BadParameter("a guarantee states epsilon and delta.", fix="Use `loss.at(delta)`.")
        stated = approximate(Fraction(float(self.loss.size)), Fraction(float(self.loss.delta)))
        object.__setattr__(self, "loss", replace(stated, curve=self.loss.curve))

    def charged(self, receipt: Receipt) -> Guarantee:
        """The same guarantee with the entry of the ledger that was charged, if the ledger is kept."""
        own = replace(self, account=receipt.account)
        if not receipt.kept:
            return own
        return replace(own, entry=receipt.entry, dataset=receipt.dataset, ledger=receipt.ledger)

    @property
    def certificate(self) -> Mapping[str, object] | None:
        """The certificate of the run, which ``sfumato verify`` checks.

        None where a draw of it has no rule, and for other neighbours, as where totals are published exactly.
        """
        if self.neighbours != ALL_ROWS:
            return None
        return self.stated if self.account is None else self.account.certificate()

    def under(self, bounds: Bounds | None) -> Guarantee:
        """The same guarantee, which says so where a bound was promised and not enforced."""
        if not isinstance(bounds, Promised):
            return self
        more = f"people with more than {counted(bounds.rows, 'row')}: {bounds.by} states that there are none"
        return replace(self, not_covered=(*self.not_covered, more))

    @property
    def epsilon(self) -> float:
        """Epsilon of (epsilon, delta)-differential privacy."""
        return float(self.loss.size)

    @property
    def delta(self) -> float:
        """Delta of (epsilon, delta)-differential privacy."""
        return float(self.loss.delta)

    @property
    def mu(self) -> float | None:
        """The parameter of Gaussian differential privacy: noise hides one unit as well as a draw of N(0, 1) hides a
        shift of ``mu``. None where the proof is of another kind."""
        squared = None if self.loss.curve is None else self.loss.curve.gaussian
        return None if squared is None else float(squared) ** 0.5

    @property
    def rho(self) -> float | None:
        """The same in zero-concentrated differential privacy; None where the proof is of another kind."""
        return None if self.loss.curve is None else float(self.loss.curve.rho)

    @property
    def membership_bound(self) -> float:
        """The largest expected accuracy of any attacker who guesses whether a person is in the data, at even odds.

        (exp(epsilon) + delta) / (exp(epsilon) + 1) (Kairouz, Oh, Viswanath 2015, doi:10.1109/TIT.2017.2685505), and the
        normal distribution function at mu/2 for Gaussian differential privacy (Dong, Roth, Su 2022), plus the
        probability with which that does not hold.
        """
        general = (1 + self.delta * exp(-self.epsilon)) / (1 + exp(-self.epsilon))
        if self.mu is None or self.loss.curve is None:
            return general
        return min(general, NormalDist().cdf(self.mu / 2) + float(self.loss.curve.delta))

    @property
    def replaced(self) -> PrivacyLoss:
        """The loss where one unit is replaced by another and the number of units stays as it is.

        Replacing is removing one and adding one: group privacy of two. Textbooks that define neighbours as tables
        with one different row state this loss.

        >>> from sfumato.dp.loss import approximate
        >>> Guarantee(loss=approximate(1, 0), unit="row", proof="Dwork et al. 2006").replaced
        Loss(epsilon=2)
        """
        return self.loss.for_group(2)

    @property
    def recorded(self) -> str:
        """Where the cost is added up."""
        if self.entry is None:
            return UNKEPT_COST
        return f"entry {self.entry} of the ledger" + (f", data set {self.dataset}" if self.dataset else "")

    def verdict(self, *, wanted: float) -> Verdict:
        """The verdict of a step that made the release with this guarantee."""
        return Verdict(
            model=MODEL, state=State.HOLDS, worst=self.epsilon, wanted=wanted, reason=f"{self} Proof: {self.proof}."
        )

    def to_dict(self) -> dict[str, object]:
        """As plain data; public parameters stand beside the other keys."""
        curve = self.loss.curve
        slack = {} if curve is None or not curve.delta else {"curve_delta": float(curve.delta)}
        return {
            "model": MODEL, "epsilon": self.epsilon, "delta": self.delta, "mu": self.mu, "rho": self.rho, **slack,
            "unit": self.unit, "max_rows": self.max_rows, "neighbours": self.neighbours,
            "replaced": {"epsilon": float(self.replaced.size), "delta": float(self.replaced.delta)},
            "covered": list(self.covered), "not_covered": list(self.not_covered), "proof": self.proof,
            "charged": self.entry is not None, "dataset": self.dataset, "entry": self.entry, **self.parameters,
            "certificate": self.certificate,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """The guarantee that :meth:`to_dict` wrote."""
        curve = None
        if plain["rho"] is not None:
            squared = None if plain["mu"] is None else Fraction(plain["mu"]) ** 2
            curve = Curve(rho=Fraction(plain["rho"]), gaussian=squared, delta=Fraction(plain.get("curve_delta", 0)))
        given = {key: value for key, value in plain.items() if key not in _LOSS}
        known = {one.name for one in fields(cls)}
        stated: dict[str, Any] = {key: given[key] for key in given if key in known}
        stated |= {key: tuple(stated[key]) for key in ("covered", "not_covered")}
        return cls(
            stated=plain.get("certificate"),
            loss=replace(approximate(Fraction(plain["epsilon"]), Fraction(plain["delta"])), curve=curve),
            parameters={key: value for key, value in given.items() if key not in known},
            **stated,
        )

    def section(self) -> tuple[tuple[str, str], ...]:
        """Title and text of each line of a report."""
        loss = [("Epsilon", f"{self.epsilon:.6g}"), ("Delta", f"{self.delta:.3g}")]
        if self.mu is not None:
            loss.append(("Gaussian parameter μ", f"{self.mu:.4g}"))
        return (
            *loss,
            ("Unit", f"{self.unit}, at most {counted(self.max_rows, 'row')} each; {self.neighbours}"),
            ("If one unit is replaced by another", f"epsilon at most {self._replaced_words}"),
            ("Covered", "; ".join(self.covered)),
            ("Not covered", "; ".join(self.not_covered)),
            ("Proof", self.proof),
            ("Charged", self.recorded),
            ("Certificate", self._certified),
        )

    @property
    def _certified(self) -> str:
        return (
            "none: there is no rule for this run" if self.certificate is None else
            "every bound and loss can be derived again from the plan: `sfumato verify` (docs/proof.md)"
        )  # fmt: skip

    @property
    def _replaced_words(self) -> str:
        loss = self.replaced
        return f"{float(loss.size):.6g}" + (f", delta at most {float(loss.delta):.3g}" if loss.delta else "")

    def __str__(self) -> str:
        name = f"({self.epsilon:g}, {self.delta:g})" if self.delta else f"{self.epsilon:g}"
        rows = f", at most {self.max_rows} rows each" if self.max_rows > 1 else ""
        return f"{name}-differential privacy for one {self.unit}{rows} ({self.neighbours}); {self.recorded}."


_LOSS = frozenset({"model", "epsilon", "delta", "mu", "rho", "curve_delta", "charged", "replaced", "certificate"})
"""Keys of :meth:`Guarantee.to_dict` that are made from the loss and the entry."""


def guarantees_of(manifest: Mapping[str, Any]) -> tuple[Guarantee, ...]:
    """The guarantees that the steps of a manifest state."""
    stated = [step.get("guarantee") for step in manifest.get("steps", ())]
    return tuple(Guarantee.from_dict(one) for one in stated if one is not None)
