"""Contract of every registered tagger."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sfumato.documents import Tagger
from sfumato.registry import registry
from sfumato.testing import check_part
from sfumato.testing.taggers import TAGGER_CHECKS

PARTS = [
    pytest.param(kind.build(example), id=kind.part_name()) for kind in registry("tagger") for example in kind.examples
]


@pytest.mark.parametrize("check", [check_part, *TAGGER_CHECKS], ids=lambda check: check.__name__)
@pytest.mark.parametrize("tagger", PARTS)
def test_contract(tagger: Tagger, check: Callable[[Tagger], None]) -> None:
    check(tagger)
    assert tagger.part_name() in registry("tagger")
