"""Differential privacy: mechanisms, privacy loss and budget ledger.

Every mechanism draws exact noise, states its loss for a sensitivity, and releases a :class:`SecretValue` only against a
receipt of a :class:`Ledger`:

>>> from sfumato.dp import Laplace, SecretValue, pure
>>> from sfumato.ledger import Charge, Ledger
>>> ledger = Ledger.unkept()
>>> _ = ledger.set_cap(pure(2), dataset="clinic")
>>> count = Laplace.for_epsilon(1)
>>> charge = Charge(loss=count.loss(), unit="row", what="number of patients")
>>> receipt = ledger.charge(charge, dataset="clinic", analyst="ana")
>>> noisy = count.release(SecretValue(1234), receipt=receipt)
>>> ledger.balance(dataset="clinic").left
Loss(epsilon=1)
"""

from sfumato.registry import exports
from sfumato.secret import SecretValue

__all__ = ["SecretValue"]

__getattr__, __dir__ = exports(
    __name__,
    Mechanism="mechanism",
    PrivacyLoss="loss",
    PrivacyMeasure="loss",
    Receipt="receipt",
    advanced="loss",
    approximate="loss",
    concentrated="loss",
    on_grid="mechanism",
    parallel="loss",
    pure="loss",
    sequential="loss",
)
