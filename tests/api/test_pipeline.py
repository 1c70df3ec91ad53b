"""From a data set to a release: identifiers never leave, the row map tells the truth, order gives nothing away."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.errors import BadParameter, NotApplicable, UnknownColumn, WriteFailed
from sfumato.masking.base import Context
from sfumato.masking.methods.pseudonymize import Pseudonymize
from sfumato.masking.methods.remove import Remove
from sfumato.masking.pipeline import protect
from sfumato.registry import registry
from sfumato.release import Lineage
from sfumato.rng import Rng
from sfumato.testing import sample


def test_identifiers_never_leave() -> None:
    done = protect(sample(), steps=(), rng=Rng(1))
    assert "name" not in done.data.table.columns
    assert [item.step.part_name() for item in done.steps] == ["remove"]


@pytest.mark.parametrize("kind", list(registry("method")), ids=lambda kind: kind.part_name())
def test_identifiers_never_leave_whatever_the_recipe_does(kind: Any, tmp_path: Path) -> None:
    """Every method with its first example: the names are gone, or pseudonyms stand in their place."""
    k: Any = registry("model").get("k-anonymity").build(2)
    people = sample(missing=False)
    done = protect(people, steps=(kind.build(kind.examples[0], base=tmp_path),), models=(k,), rng=Rng(1))
    if "name" in done.data.table.columns:
        assert kind is Pseudonymize
        assert not set(done.data.table.column("name")) & set(people.table.column("name"))


def test_the_row_map_leads_back_to_the_original() -> None:
    people = sample()
    done = protect(people, steps=(), rng=Rng(1))
    back = people.table.frame[done.lineage.rows].drop("name")
    assert done.data.table.frame.equals(back)


def test_rows_are_shuffled_unless_order_is_kept() -> None:
    people = sample()
    shuffled = protect(people, steps=(), rng=Rng(1))
    kept = protect(people, steps=(), rng=Rng(1), order="kept")
    assert not shuffled.data.table.frame.equals(kept.data.table.frame)
    assert kept.lineage.rows.tolist() == list(range(people.rows))
    again = protect(people, steps=(), rng=Rng(1))
    assert shuffled.data.table.frame.equals(again.data.table.frame)


def test_models_judge_the_outcome() -> None:
    k: Any = registry("model").get("k-anonymity").build(5)
    done = protect(sample(), steps=(), models=(k,), rng=Rng(1))
    assert not done.holds
    [verdict] = done.verdicts
    assert verdict.worst == 1
    assert verdict.failing > 0


def test_lineage_composes_and_inverts() -> None:
    first = Lineage.identity(5).then(pl.Series([4, 3, 0]).to_numpy())
    second = first.then(pl.Series([2, -1, 0]).to_numpy())
    assert second.rows.tolist() == [0, -1, 4]
    assert second.release_row(5).tolist() == [0, -1, -1, -1, 2]
    assert "4" not in repr(second)
    mine = pl.Series([1, 0]).to_numpy().copy()
    Lineage(mine)
    mine[0] = 7  # the caller's own array is left as it was, and free
    assert mine.tolist() == [7, 0]


def test_remove_refuses_unknown_columns() -> None:
    with pytest.raises(UnknownColumn, match="Did you mean `household`"):
        Remove(columns=("housohold",)).apply(sample(), Context(rng=Rng(1)))


def test_a_release_of_nothing_is_refused() -> None:
    people = sample()
    with pytest.raises(NotApplicable, match="nothing is left"):
        Remove(columns=people.table.columns).apply(people, Context(rng=Rng(1)))


# --- pseudonyms -----------------------------------------------------------------------------------------------------


def pseudonyms(step: Pseudonymize, column: str = "name") -> pl.Series:
    return step.apply(sample(), Context(rng=Rng(1))).table.column(column)


def test_pseudonyms_are_stable_under_one_key_and_differ_under_another(tmp_path: Path) -> None:
    one, two = Pseudonymize(key=tmp_path / "a.key"), Pseudonymize(key=tmp_path / "b.key")
    assert pseudonyms(one).equals(pseudonyms(one))
    assert pseudonyms(one).n_unique() == 300
    assert not set(pseudonyms(one)) & set(pseudonyms(two))
    assert not set(pseudonyms(one)) & set(sample().table.column("name"))


def test_equal_scopes_agree_across_columns(tmp_path: Path) -> None:
    key = tmp_path / "a.key"
    name = pseudonyms(Pseudonymize(key=key, scope="person"))
    zips = pseudonyms(Pseudonymize(key=key, columns=("zip",), scope="person"), "zip")
    again = pseudonyms(Pseudonymize(key=key, columns=("zip",), scope="place"), "zip")
    assert not zips.equals(again)
    assert zips.null_count() == sample().table.column("zip").null_count()
    assert name.null_count() == 0


def test_the_key_is_made_for_its_owner_alone_and_never_published(tmp_path: Path) -> None:
    key = tmp_path / "secret.key"
    step = Pseudonymize(key=key)
    change = step.apply(sample(), Context(rng=Rng(1)))
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    said = json.dumps([dict(change.public), step.public()])
    assert key.read_text().strip() not in said
    assert "secret.key" not in said


def test_the_reversible_map_goes_back_and_is_not_overwritten(tmp_path: Path) -> None:
    step = Pseudonymize(key=tmp_path / "a.key", map=tmp_path / "back.json")
    released = pseudonyms(step)
    back = json.loads((tmp_path / "back.json").read_text())["name"]
    assert [back[pseudonym] for pseudonym in released] == sample().table.column("name").to_list()
    assert pseudonyms(step).equals(released), "a run that failed later on cannot be made again"
    with pytest.raises(WriteFailed, match="not replaced"):
        step.apply(sample(40), Context(rng=Rng(1)))
    assert json.loads((tmp_path / "back.json").read_text())["name"] == back


@pytest.mark.parametrize("content", ["", "abc", "not hexadecimal at all, is it", "00ff"])
def test_a_file_that_holds_no_key_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "bad.key"
    file.write_text(content)
    with pytest.raises(BadParameter, match="32 hexadecimal digits"):
        pseudonyms(Pseudonymize(key=file))


def test_hmac_matches_the_standard_library_construction(tmp_path: Path) -> None:
    import hashlib
    import hmac

    key = tmp_path / "a.key"
    key.write_text("0b" * 20)
    first = pseudonyms(Pseudonymize(key=key, length=64))[0]
    assert first == hmac.new(b"\x0b" * 20, b"name\x00person 0", hashlib.sha256).hexdigest()
