"""The result of a recipe for microdata: the masked table, the secret row map, and the files of both folders."""

from __future__ import annotations

import os
import shutil
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from sfumato.api.protection import PAGE, Protection
from sfumato.data import Table, read, to_native, write
from sfumato.data.atomic import sha256
from sfumato.data.format import format_for
from sfumato.data.key_file import write_key
from sfumato.data.text_folder import TEXT_FOLDER, write_text_folder
from sfumato.dataset import Data
from sfumato.errors import BadParameter, WriteFailed
from sfumato.masking.pipeline import MaskingResult
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release
from sfumato.release.folder import KEY, LINEAGE, PRIVATE, TEXTS, load_lineage, write_lineage, written_with
from sfumato.release.public_folder import Leaving, PublicFolder, Why, leaving_manifest, released
from sfumato.reports import (
    CODEBOOK,
    README,
    Audience,
    Report,
    ReportData,
    codebook,
    leaving_report,
    published_manifest,
    readme,
    report_json,
    write_report,
)
from sfumato.secret import SecretValue
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.api.kinds.microdata.inputs import InputTable


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class MicrodataProtection(Protection):
    """The masked table, which may be published, and everything its owner must keep."""

    release_kind = "microdata"
    judged_in_memory = True

    recipe: Recipe
    key: SecretValue[bytes]
    """The key of the random numbers. A seed repeats the run only together with it: ``protect(..., seed=7,
    key=done.key)``."""
    report_data: ReportData
    """The data of the report."""
    column_names: tuple[str, ...]
    """The names of the released columns."""
    in_memory: Release | None
    """The release, if it is in memory."""

    @property
    def _named_account(self) -> tuple[str | Path, str] | None:
        return self.recipe.account

    @property
    def written_plan(self) -> str:
        return self.recipe.to_yaml()

    @property
    def purpose(self) -> str:
        return self.recipe.about.purpose or ""

    @property
    def release(self) -> Release:
        """The masked table with its public manifest; refused as :attr:`data` is."""
        self._refuse_unmet("not handed out")
        return self.judged_release

    @property
    def judged_release(self) -> Release:
        """The release for attacks, checks and measures, met or not. Do not publish it from here."""
        return self.in_memory or Release(table=self._read(), manifest=self.evaluation.manifest)

    @abstractmethod
    def _read(self) -> Table:
        """The released table, read into memory."""

    @property
    def promise(self) -> bool:
        return self.report_data.promised

    @property
    def rows(self) -> int:
        """The number of released rows."""
        return int(self.evaluation.manifest["rows"])

    @property
    @abstractmethod
    def original(self) -> Data:
        """The original data set; an out-of-core run reads it into memory."""

    @property
    @abstractmethod
    def lineage(self) -> Lineage:
        """The secret row map."""

    def __repr__(self) -> str:
        return f"<Protection: {counted(self.rows, 'row')} released, {self.judgement.standing}>"

    def _repr_html_(self) -> str:
        from html import escape

        from sfumato.reports.notebook import attacks_html

        results = self.evaluation.to_dict()
        risk = attacks_html(
            results["attacks"],
            before=results["attacks_before"],
            limits=results["limits"],
            changes=[item.to_dict() for item in self.advice],
        )
        judged = (
            f"{self.judgement.standing.label}: {counted(self.rows, 'row')} in the release. {self.judgement.sentence}"
        )
        return f"<p>{escape(judged)}</p>{self.verdicts._repr_html_()}{risk}{self.measures._repr_html_()}"

    def report(self, *, audience: Audience = "internal") -> Report:
        """The report of the release: shown in a notebook, written by its ``save(path)``.

        ``internal`` is for the owner; ``external`` contains no count, share or row number of the original.
        """
        return Report(data=self.report_data, audience=audience)

    def _write(self, public: PublicFolder, private: Path, suffix: str | None) -> Mapping[str, object]:
        write_key(private / KEY, self.key)
        self._write_lineage(private)
        data, reading = self._write_data(public, suffix)
        visible = self.report_data.external()
        public.text(README, Leaving(readme(visible, data=data.name), visible.why))
        public.table(CODEBOOK, released(codebook(visible, None if self.in_memory is None else self.in_memory.table)))
        files = {path.name: sha256(path) for path in (data, public.path / README, public.path / CODEBOOK)}
        _, page = leaving_report(replace(visible, files=files))
        public.text(PAGE, page)
        document, _ = leaving_report(replace(visible, files={**files, PAGE: sha256(public.path / PAGE)}))
        public.json(PRIVATE, document)
        published = {**published_manifest(self.evaluation.manifest), **({"reading": reading} if reading else {})}
        manifest = public.manifest(leaving_manifest(published), kind=self.release_kind)
        listed = {name: digest for name, digest in manifest["files"].items() if "/" not in name}
        owner = replace(self.report_data, files=listed)
        write_report(owner, private / PAGE, audience="internal")
        (private / PRIVATE).write_text(report_json(owner, "internal") + "\n", encoding="utf-8")
        (private / "recipe.yaml").write_text(self.recipe.to_yaml(), encoding="utf-8")
        return manifest

    @abstractmethod
    def _write_data(self, folder: PublicFolder, suffix: str | None) -> tuple[Path, Mapping[str, Any]]:
        """Write the data file into the release folder; with the options that it must be read with."""

    @abstractmethod
    def _write_lineage(self, folder: Path) -> None:
        """Write the secret row map into the private folder."""

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        files = (manifest or {}).get("files", {})
        return {
            **self._places(folder),
            "rows": self.rows,
            "original_rows": self.report_data.original_rows,
            "undeclared": [name for name in self.column_names if name not in self.recipe.schema.columns],
            "steps": [dict(step) for step in self.report_data.outcomes],
            **self.evaluation.to_dict(),
            "sha256": next((digest for name, digest in files.items() if name.startswith("data.")), None),
            "files": dict(files),
        }


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class InMemoryProtection(MicrodataProtection):
    """A release that was made in memory, with its original and the secret row map."""

    dataset: Data
    protected: MaskingResult
    suffix: str = ".csv"
    """Format of the data file."""

    def _native(self) -> object:
        return to_native(self._read())

    def _read(self) -> Table:
        assert self.in_memory is not None
        return self.in_memory.table

    @property
    def original(self) -> Data:
        return self.dataset

    @property
    def lineage(self) -> Lineage:
        return self.protected.lineage

    def _write_data(self, folder: PublicFolder, suffix: str | None) -> tuple[Path, Mapping[str, Any]]:
        table = self._read()
        path = folder.place(f"data{suffix or self.suffix}", Why.RELEASED)
        write(table, path)
        if self.dataset.table.origin == TEXT_FOLDER and "text" in table.columns:
            write_text_folder(table.frame["text"], folder.place(TEXTS, Why.RELEASED))
        return path, reading_as_judged(table.frame, path)

    def _write_lineage(self, folder: Path) -> None:
        write_lineage(self.lineage, folder)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class InEngineProtection(MicrodataProtection):
    """A file that an engine masked in a temporary folder, which ``save`` moves into the release folder."""

    path: Path
    folder: TemporaryDirectory[str]
    """Removed with this object."""
    source: InputTable

    def _native(self) -> pl.LazyFrame:
        return (
            pl.scan_parquet(self.path) if self.path.suffix == ".parquet" else pl.scan_csv(self.path, infer_schema=False)
        )

    def _read(self) -> Table:
        return read(self.path, **written_with(self.path))

    @property
    def original(self) -> Data:
        return Data.of(self.source.table(), self.recipe.schema)

    @property
    def lineage(self) -> Lineage:
        lineage = load_lineage(self.path.with_name(LINEAGE))
        assert lineage is not None
        return lineage

    def _write_data(self, folder: PublicFolder, suffix: str | None) -> tuple[Path, Mapping[str, Any]]:
        if suffix not in (None, self.path.suffix):
            raise BadParameter(
                f"The masked file was written as {self.path.suffix}.", fix=f"Run protect with suffix={suffix!r}."
            )
        folder.allow("the masked file", Why.RELEASED)
        return _moved(self.path, folder.path), {}  # the written file was judged

    def _write_lineage(self, folder: Path) -> None:
        _moved(self.path.with_name(LINEAGE), folder).chmod(0o600)


def reading_as_judged(judged: pl.DataFrame, path: Path) -> dict[str, Any]:
    """The options with which the written file gives the values that were judged; refused if none do.

    The verdicts are about classes of equal values. They hold for the file if in each column two cells are equal, or
    empty, in the file where they were in the table that was judged. Texts that look like numbers stay texts.
    """
    lost = _columns_not_kept(judged, read(path, **written_with(path)).frame)
    texts = [name for name in lost if judged.schema[name] in (pl.String, pl.Categorical, pl.Enum)]
    reading: dict[str, Any] = {}
    if texts and "text" in format_for(path).model_fields:
        reading = {"text": texts}
        lost = _columns_not_kept(judged, read(path, **written_with(path), **reading).frame)
    if lost:
        raise WriteFailed(
            f"Column `{lost[0]}` has values that a {path.suffix} file does not keep apart, or does not keep, so the "
            "verdicts would not hold for the file. Nothing was written.",
            fix="Write Parquet, or recode the column: no empty texts, no blanks at the end of texts, rounded numbers.",
            columns=tuple(lost),
        )
    return reading


def _columns_not_kept(judged: pl.DataFrame, written: pl.DataFrame) -> list[str]:
    if judged.height != written.height or judged.width != written.width:
        return list(judged.columns)
    return [
        before.name
        for before, after in zip(judged, written, strict=True)
        if not (before.is_null() == after.is_null()).all()
        or not pl.DataFrame([before.alias("before"), after.alias("after")]).n_unique()
        == before.n_unique()
        == after.n_unique()
    ]


def _moved(file: Path, folder: Path) -> Path:
    """The file under the same name in another folder."""
    path = folder / file.name
    try:
        os.link(file, path)
    except OSError:  # another file system, or one without links
        shutil.copyfile(file, path)
    return path
