"""The result of ``sfumato.protect``: the release, its evaluation, and ``save``, which writes both folders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import polars as pl

from sfumato.api.kind import ReleaseKind, ReportPage, accepts, call
from sfumato.api.results import AttackResults, CheckResults, MeasureResults, as_text
from sfumato.errors import BadParameter, PolicyNotMet, Unmet
from sfumato.evaluation import Advice, Evaluation, LimitResult
from sfumato.evaluation.formatting import Plain
from sfumato.ledger.register import recorder
from sfumato.release.folder import MANIFEST, PRIVATE, private_folder, refuse_existing
from sfumato.release.guarantee import Guarantee, guarantees_of
from sfumato.release.public_folder import Leaving, PublicFolder, promised, release_folders
from sfumato.release.standing import Judgement
from sfumato.reports import README, Audience
from sfumato.reports.kind_page import KindPage, PlainReport, json_text

if TYPE_CHECKING:
    from rich.console import Console

PAGE = "report.html"
T = TypeVar("T")


def choices(calls: Sequence[str]) -> str:
    """Decisions of which one is to be made, as calls in Python."""
    return "Choose one:\n  " + "\n  ".join(calls)


def release_readme(kind: str, files: Sequence[str], *lines: str) -> str:
    """The README of a release: its kind, statements about it, and its files."""
    stated = [*lines, "", *(f"- `{name}`" for name in sorted(files)), f"- `{MANIFEST}`: the manifest with the SHA-256"]
    return "\n".join([f"# Release of kind {kind}", "", *stated]) + " of every file\n"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Protection(ABC):
    """A release of any kind, which may be published, and what its owner must keep. ``save`` writes both."""

    release_kind: ClassVar[str]
    """The kind of release; the manifest names it."""
    judged_in_memory: ClassVar[bool] = False
    """Whether the verbs of this kind take the result itself; files are written for them otherwise."""

    evaluation: Evaluation
    """Outcomes of attacks, measures, verdicts, limits and advice."""
    hand_out: bool = False
    """Whether the data are handed out even if a model or a limit is not met: ``protect(..., unmet=True)``."""

    @property
    def data(self) -> Any:
        """What is released: the masked table in the caller's own type (pandas, Polars, Arrow), a lazy frame for
        out-of-core runs; the graph, the tables by name, the model.

        It is refused if a model or a limit is not met, unless ``protect`` was called with ``unmet=True``.
        """
        self._refuse_unmet("not handed out")
        return self._native()

    @abstractmethod
    def _native(self) -> object:
        """What is released, met or not."""

    def _refuse_unmet(self, what: str) -> None:
        calls = [f"{way.does}: {way.call()}" for way in self.evaluation.ways_out]
        fix = choices(calls) if calls else "Change the recipe, or set `unmet`."
        if self.unmet and not self.hand_out:
            raise (PolicyNotMet if self.evaluation.holds else Unmet)(
                f"The release is {what}: " + "; ".join(self.unmet) + ".", fix=fix, document=self.to_dict()
            )

    @property
    def promise(self) -> bool:
        """Whether the release promises differential privacy, so that no figure about the original leaves with it."""
        return promised(self.evaluation.manifest)

    @property
    def attacks(self) -> AttackResults:
        """The outcome of each attack on the release, with limits and advice."""
        return AttackResults(
            outcomes=self.evaluation.attacks, limits=self.evaluation.limits, manifest=self.evaluation.manifest
        )

    @property
    def measures(self) -> MeasureResults:
        """Disclosure risk and utility of the release."""
        return MeasureResults(results=self.evaluation.measures)

    @property
    def verdicts(self) -> CheckResults:
        """The verdict on each privacy model of the recipe."""
        return CheckResults(verdicts=self.evaluation.verdicts)

    @property
    def limits(self) -> tuple[LimitResult, ...]:
        """The result of each limit of the recipe."""
        return self.evaluation.limits

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to change about attacks that exceed their limit."""
        return self.evaluation.advice

    @property
    def unmet(self) -> tuple[str, ...]:
        """In words, every model that does not hold and every limit that is exceeded."""
        return self.evaluation.unmet

    @property
    def judgement(self) -> Judgement:
        """The standing of the release: publish, not met, or not judged, with its reason."""
        return self.evaluation.judgement

    @property
    def met(self) -> bool:
        """Whether every model holds and every limit is met."""
        return not self.unmet

    def to_frame(self) -> pl.DataFrame:
        """One row per attack on the release, as a Polars data frame."""
        return self.attacks.to_frame()

    def __str__(self) -> str:
        """What the command line prints; no row of the data is shown."""
        return as_text(self.show)

    def show(self, console: Console | None = None) -> None:
        """Print what ``sfumato protect`` prints."""
        from sfumato.reports.terminal import print_protection

        print_protection(self.to_dict(), console)

    @abstractmethod
    def report(self, *, audience: Audience = "internal") -> ReportPage:
        """The report of the release: shown in a notebook, written by its ``save(path)``.

        ``internal`` is for the owner; ``external`` contains no count, share or row number of the original.
        """

    def save(
        self, folder: str | Path, *, suffix: str | None = None, force: bool = False, unmet: bool = False
    ) -> dict[str, Any]:
        """Write the release folder and the private folder beside it, both or neither.

        ``suffix`` is the format of the data file of microdata, for example ``.csv`` or ``.parquet``. A release that
        does not meet its models or limits is refused unless ``unmet`` is set. Returns the document that
        ``sfumato protect --json`` prints.
        """
        target = Path(folder)
        if not unmet:
            self._refuse_unmet("not written")
        refuse_existing(target, force=force, kind=self.release_kind)
        record = release_recorder(
            self.guarantees, kind=self.release_kind, name=target.name, plan=self.written_plan,
            verdicts=[verdict.public() for verdict in self.evaluation.verdicts], account=self._named_account,
            why=self.purpose,
        )  # fmt: skip
        with release_folders(target, promise=self.promise, force=force, record=record) as (public, private):
            manifest = self._write(public, private, suffix)
        return self.to_dict(target, manifest)

    def keep(self, folder: Path) -> None:
        """Write the release folder and its private folder, met or not, where nobody else reads them: nothing leaves, so
        nothing is recorded."""
        with release_folders(folder, promise=self.promise) as (public, private):
            self._write(public, private, None)

    @contextmanager
    def written(self) -> Iterator[Path]:
        """Both folders in a temporary place."""
        with TemporaryDirectory() as place:
            target = Path(place) / "release"
            self.keep(target)
            yield target

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The guarantees of differential privacy that the release states."""
        return guarantees_of(self.evaluation.manifest)

    @property
    def _named_account(self) -> tuple[str | Path, str] | None:
        """The ledger and the data set that the plan names."""
        return None

    @property
    @abstractmethod
    def written_plan(self) -> str:
        """The plan that made the release, for its fingerprint."""

    @property
    def purpose(self) -> str:
        """Why it is released, as the plan says."""
        return ""

    @abstractmethod
    def _write(self, public: PublicFolder, private: Path, suffix: str | None) -> Mapping[str, object]:
        """Fill both folders and return the manifest, which is written last."""

    @abstractmethod
    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The document that ``sfumato protect --json`` prints: for the owner, with counts of the original."""

    def _places(self, folder: Path | None) -> dict[str, object]:
        """Where the release lies, or will lie, and its kind: the first keys of every document."""
        return {
            "kind": self.release_kind,
            "release": f"{folder}/" if folder is not None else None,
            "private": f"{private_folder(folder)}/" if folder is not None else None,
        }


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PlainProtection(Protection):
    """A release whose report is made from one plain document: graphs, tables and models."""

    page: ClassVar[KindPage]
    plan_file: ClassVar[str] = "plan.yaml"
    """Name of the plan in the private folder."""
    written_as: ClassVar[str]
    """Says in which format the release is written."""

    @abstractmethod
    def _document(self) -> Mapping[str, object]:
        """The document of the private folder: the results without places."""

    def report(self, *, audience: Audience = "internal") -> PlainReport:
        return PlainReport(page=self.page, document=self._document(), audience=audience)

    @abstractmethod
    def _write_data(self, public: PublicFolder, private: Path, document: Plain) -> Mapping[str, Leaving[object]]:
        """Write the released data, and what the owner needs beside it; returns the manifest."""

    def _write(self, public: PublicFolder, private: Path, suffix: str | None) -> Mapping[str, object]:
        if suffix is not None:
            raise BadParameter(self.written_as, fix="Leave the format out.")
        own = self.report()
        outside = replace(own, audience="external")
        manifest = self._write_data(public, private, own.document)
        public.text(PAGE, Leaving(outside.html, outside.why))
        (private / PAGE).write_text(own.html, encoding="utf-8")
        (private / PRIVATE).write_text(json_text(own.document), encoding="utf-8")
        (private / self.plan_file).write_text(self.written_plan, encoding="utf-8")
        files = [path.name for path in public.path.iterdir()]
        public.text(README, Leaving(release_readme(self.release_kind, files, *outside.sentences), outside.why))
        return public.manifest(manifest, kind=self.release_kind)


def release_recorder(
    guarantees: Sequence[Guarantee],
    *,
    kind: str,
    name: str,
    plan: str,
    verdicts: Sequence[Mapping[str, object]],
    account: tuple[str | Path, str] | None,
    why: str,
) -> Callable[[Path], None] | None:
    """What enters a release into the register of what left, when its folder is complete.

    A release with a guarantee is recorded where it was charged, every other one in ``account``: the ledger and the data
    set that its plan or the document of its data set names. None if neither names one.
    """
    charged = [(one.ledger, one.dataset) for one in guarantees if one.ledger and one.dataset]
    ledger, dataset = next(iter(charged), account or (None, None))
    return recorder(
        ledger=ledger, dataset=dataset, kind=kind, name=name, plan=plan, verdicts=verdicts, why=why,
        charges=[one.entry for one in guarantees if one.entry is not None],
    )  # fmt: skip


def judge_release(kind: ReleaseKind, verb: Callable[..., T], release: object, options: Mapping[str, object]) -> T:
    """Call a verb of a kind on a release. The result of ``protect`` brings its own original."""
    what = f"a release of kind `{kind.part_name()}`"
    if not isinstance(release, Protection) or release.judged_in_memory:
        return call(verb, release, what=what, options=options)
    own = {"original": release} if accepts(verb, "original") else {}
    with release.written() as folder:
        return call(verb, folder, what=what, options={**own, **options})
