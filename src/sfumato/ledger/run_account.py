"""Charge of one run: to the ledger that its owner names, or to one that ends with the run.

Every family that draws noise for a whole run (tables, models, synthetic data, item counts) is charged here, before it
reads a row. Where no ledger is named, the run has an account of its own, whose cap is the cost; the receipt says that
the cost is not added to that of other runs (:attr:`~sfumato.dp.receipt.Receipt.kept`), and so do reports.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure
from sfumato.dp.receipt import Receipt
from sfumato.errors import BadParameter
from sfumato.ledger.exact_budget import cost_amount, loss_of
from sfumato.ledger.ledger import Ledger

__all__ = ["charge_run"]


def charge_run(
    cost: PrivacyLoss,
    *,
    ledger: Ledger | str | Path | None,
    dataset: str | None,
    unit: str,
    name: str,
    public: Mapping[str, Any],
    in_rho: PrivacyLoss | None = None,
) -> Receipt:
    """Charge a run and return its receipt. ``in_rho`` is the cost for a budget in rho, where it is another.

    ``name`` and ``public``, the public parameters, are the text of the entry.

    >>> from sfumato.dp.loss import concentrated
    >>> paid = charge_run(concentrated("1/3"), ledger=None, dataset=None, unit="row", name="tables", public={})
    >>> paid.covers, paid.kept
    (Loss(rho=1/3), False)
    """
    if (ledger is None) != (dataset is None):
        raise BadParameter("`ledger` and `dataset` belong together: name the data set that is charged.")
    if ledger is None:
        book, account = Ledger.unkept(), "run"
        book.set_cap(loss_of(cost_amount(cost, cost.measure)), dataset=account)  # as the ledger counts it
    else:
        book, account = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger), dataset or ""
        cap = book.balance(dataset=account).cap
        if in_rho is not None and cap is not None and cap.measure is PrivacyMeasure.RHO:
            cost = in_rho
    text = json.dumps({"run": name, **public}, sort_keys=True, default=str)
    query = f"{name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return book.reserve(cost, dataset=account, analyst="owner", unit=unit, query=query, text=text)
