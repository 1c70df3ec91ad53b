"""Output is there whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import polars as pl
import pytest

from sfumato.data import Table, replacing, replacing_folder, sha256, write, write_secret
from sfumato.errors import FileMissing, OutputExists, WriteFailed

FRAME = pl.DataFrame({"zip": ["02141", "00501"], "n": [1, 2]})


class Boom(Exception):
    """Something that goes wrong in the middle of writing."""


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_appears_when_complete(tmp_path: Path) -> None:
    place = tmp_path / "out.csv"
    with replacing(place) as temporary:
        temporary.write_text("new")
        assert temporary.suffix == ".csv"
        assert not place.exists()
    assert place.read_text() == "new"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("failure", [Boom(), KeyboardInterrupt(), SystemExit(1)])
def test_any_exception_leaves_the_old_file_and_nothing_else(tmp_path: Path, failure: BaseException) -> None:
    place = tmp_path / "out.csv"
    place.write_text("old")
    with pytest.raises(type(failure)), replacing(place, force=True) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise failure
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_an_existing_file_needs_force(tmp_path: Path) -> None:
    place = tmp_path / "out.csv"
    place.write_text("old")
    with pytest.raises(OutputExists) as caught, replacing(place):
        raise AssertionError("the block must not run")
    assert "`force`" in str(caught.value)
    with replacing(place, force=True) as temporary:
        temporary.write_text("new")
    assert place.read_text() == "new"


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    if not links:
        monkeypatch.setattr(os, "link", full)
        with replacing(tmp_path / "out.csv") as temporary:
            temporary.write_text("first")
        assert (tmp_path / "out.csv").read_text() == "first"
        (tmp_path / "out.csv").unlink()
    place = tmp_path / "out.csv"
    with pytest.raises(OutputExists), replacing(place) as temporary:  # noqa: PT012
        temporary.write_text("mine")
        place.write_text("theirs")
    assert place.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a Linux device that is always full")
def test_a_full_disk_while_writing(tmp_path: Path) -> None:
    place = tmp_path / "out.csv"
    place.write_text("old")
    with pytest.raises(WriteFailed) as caught, replacing(place, force=True) as temporary:  # noqa: PT012
        temporary.write_text("half")
        with open("/dev/full", "w") as device:
            device.write("x" * 100_000)
    assert "No space left" in str(caught.value)
    assert caught.value.code == "SFU-108"
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_at_the_last_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    place = tmp_path / "out.csv"
    place.write_text("old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(WriteFailed):
        write(Table(frame=FRAME), place, force=True)
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".xlsx", ".sav", ".dta", ".xpt", ".jsonl", ".duckdb"])
def test_every_format_reports_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    """A link to /dev/full under the temporary name: the libraries meet a real full device."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full, a Linux device that is always full")
    from sfumato.data import atomic

    original = atomic._beside

    def beside(path: Path) -> Path:
        found = original(path)
        found.symlink_to("/dev/full")
        return found

    monkeypatch.setattr(atomic, "_beside", beside)
    place = tmp_path / f"out{suffix}"
    with pytest.raises(WriteFailed):
        write(Table(frame=FRAME), place)
    assert not place.exists()
    assert "02141" not in str(list(tmp_path.iterdir()))
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FileMissing), replacing(tmp_path / "no" / "such" / "out.csv"):
        raise AssertionError("the block must not run")
    with pytest.raises(WriteFailed), replacing(tmp_path, force=True):
        raise AssertionError("the block must not run")
    (tmp_path / "file").touch()
    with pytest.raises(WriteFailed), replacing_folder(tmp_path / "file", force=True):
        raise AssertionError("the block must not run")


def test_a_folder_appears_when_complete(tmp_path: Path) -> None:
    place = tmp_path / "release"
    with replacing_folder(place) as temporary:
        (temporary / "deep").mkdir()
        (temporary / "deep" / "data.csv").write_text("new")
        assert not place.exists()
    assert (place / "deep" / "data.csv").read_text() == "new"
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("failure", [Boom(), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_any_exception_leaves_the_old_folder(tmp_path: Path, failure: BaseException) -> None:
    place = tmp_path / "release"
    place.mkdir()
    (place / "data.csv").write_text("old")
    wanted = WriteFailed if isinstance(failure, OSError) else type(failure)
    with pytest.raises(wanted), replacing_folder(place, force=True) as temporary:  # noqa: PT012
        (temporary / "data.csv").write_text("half")
        raise failure
    assert (place / "data.csv").read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_an_old_folder_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "release"
    place.mkdir()
    (place / "stale.csv").write_text("old")
    with pytest.raises(OutputExists), replacing_folder(place):
        raise AssertionError("the block must not run")
    with replacing_folder(place, force=True) as temporary:
        (temporary / "data.csv").write_text("new")
    assert [file.name for file in place.iterdir()] == ["data.csv"]
    assert list(tmp_path.iterdir()) == [place]


def test_the_old_folder_comes_back_if_the_new_one_cannot_be_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "release"
    place.mkdir()
    (place / "data.csv").write_text("old")
    original, calls = os.rename, []

    def second_fails(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == 2:
            full()
        original(source, target)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(WriteFailed), replacing_folder(place, force=True) as temporary:
        (temporary / "data.csv").write_text("new")
    assert len(calls) == 3
    assert (place / "data.csv").read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_force_does_not_erase_a_folder_of_somebody_else(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputExists), replacing_folder(home, force=True, marker="release.json"):
        raise AssertionError("the block must not run")
    (home / "release.json").touch()
    with replacing_folder(home, force=True, marker="release.json"):
        pass
    assert list(home.iterdir()) == []


def test_an_empty_folder_may_be_filled_without_force(tmp_path: Path) -> None:
    place = tmp_path / "release"
    place.mkdir()
    with replacing_folder(place) as temporary:
        (temporary / "data.csv").write_text("new")
    assert (place / "data.csv").read_text() == "new"


def test_a_folder_behind_a_link_is_replaced_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "old").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    with replacing_folder(tmp_path / "link", force=True) as folder:
        (folder / "new").write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert [file.name for file in (tmp_path / "disk").iterdir()] == ["new"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["disk", "link"]


def test_a_secret_is_for_its_owner_only(tmp_path: Path) -> None:
    place = tmp_path / "key"
    old = os.umask(0)
    try:
        write_secret(place, "open sesame")
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert place.read_text() == "open sesame"
    with pytest.raises(OutputExists):
        write_secret(place, b"other")


def test_sha256_of_a_known_text(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
