"""The budget ledger: what was spent on every data set, by whom and for what, and what is left.

>>> from sfumato.dp import pure
>>> from sfumato.ledger import Ledger
>>> ledger = Ledger.unkept()
>>> entry = ledger.set_cap(pure(2), dataset="clinic")
>>> ledger.balance(dataset="clinic").left
Loss(epsilon=2)
"""

from sfumato.registry import exports

__getattr__, __dir__ = exports(__name__, Balance="ledger", Charge="charge", Entry="ledger", Ledger="ledger")
