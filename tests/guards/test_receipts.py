"""Receipts come from charges: nobody else issues one, and a ledger that is not kept is named as such."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato
from sfumato.dp.loss import pure
from sfumato.dp.receipt import Receipt
from sfumato.dp.spending import ReceiptExchange
from sfumato.errors import NoReceipt
from sfumato.ledger.charge import Charge, charge_run

SOURCE = Path(sfumato.__file__).parent


def trees(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules in whose text one of the words stands; no other one can have a node that names it."""
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if any(word in text for word in words):
            yield str(file.relative_to(SOURCE)), ast.parse(text)


def test_only_the_ledger_issues_receipts() -> None:
    importers = {
        name for name, tree in trees("issue", "_ISSUER") for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "sfumato.dp.receipt"
        and {alias.name for alias in node.names} & {"issue", "_ISSUER"}
    }  # fmt: skip
    assert importers == {"ledger/ledger.py"}


def test_a_ledger_that_is_not_kept_has_one_name() -> None:
    """`Ledger.unkept()`: its receipts say that the cost is not added to that of other runs."""
    named = {
        name for name, tree in trees(":memory:") for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "open"
        and isinstance(node.func.value, ast.Name) and node.func.value.id == "Ledger"
        and any(isinstance(given, ast.Constant) and given.value == ":memory:" for given in node.args)
    }  # fmt: skip
    assert named == set()


def test_receipts_are_neither_made_nor_used_beyond_their_cost() -> None:
    with pytest.raises(NoReceipt):
        Receipt(pure(1), dataset="d", entry=1, kept=True)
    paid = charge_run(Charge(loss=pure("1/3"), unit="row", what="test"), ledger=None, dataset=None)
    assert not paid.kept
    parts = paid.exchanged(pure(1), pure(2), exchange=ReceiptExchange(theorem="a theorem"))
    assert [part.covers for part in parts] == [pure(1), pure(2)]
    assert not parts[0].kept
    for refused in (
        lambda: paid.use(pure("1/9")),
        lambda: paid.exchanged(pure(1), exchange=ReceiptExchange(theorem="a theorem")),
    ):
        with pytest.raises(NoReceipt):
            refused()
