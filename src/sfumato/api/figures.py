"""Published figures: the result of plans whose release is a set of tables, with or without a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from sfumato import __version__
from sfumato.api.protection import PlainProtection
from sfumato.api.results import CheckResults, MeasureResults
from sfumato.errors import BadParameter
from sfumato.evaluation import Evaluation
from sfumato.evaluation.formatting import Plain
from sfumato.measures.figure_errors import figure_errors
from sfumato.release import State, Verdict
from sfumato.release.folder import load_manifest
from sfumato.release.guarantee import Guarantee
from sfumato.release.public_folder import Leaving, PublicFolder, declared
from sfumato.release.standing import Judgement, judge
from sfumato.reports.figures_page import FIGURES_PAGE
from sfumato.tables.cross_tab import CrossTab, write_cross_tabs
from sfumato.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from sfumato.tables.interval_audit import PublishedTable

ExactTables = Callable[[], Mapping[str, pl.DataFrame]]
"""Calculates the tables of a plan without protection, by name."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class FiguresProtection(PlainProtection):
    """Tables that may be published, public facts about them, and the plan that made them."""

    release_kind: ClassVar[str] = "tables"
    page = FIGURES_PAGE
    written_as = "Tables are written as CSV."

    tables: Mapping[str, pl.DataFrame]
    """The tables by name."""
    facts: Mapping[str, object]
    """The method and its parameters, for readers of the tables."""
    guarantee: Guarantee | None
    """The guarantee of differential privacy, if there is one."""
    plan: str
    """The plan as it was written. It stays in the private folder."""
    owner: Mapping[str, object] = field(default_factory=dict)
    """Counts of the original, for the owner alone."""
    named_account: tuple[str | Path, str] | None = None
    """The ledger and the data set that the plan names."""
    exact: ExactTables | None = None
    """Calculates the same tables without protection, for the owner alone."""
    judge_published: Callable[[PublishedTable], Verdict] | None = None
    """Judges published tables by the plan and the original."""
    cross_tabs: tuple[CrossTab, ...] = ()
    """The tables as cross-tabs, with statuses of suppressed cells for the owner alone."""

    @classmethod
    def of(
        cls, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, object], verdicts: tuple[Verdict, ...], *,
        guarantee: Guarantee | None, plan: str, unmet: bool, owner: Mapping[str, object] | None = None,
        named_account: tuple[str | Path, str] | None = None, exact: ExactTables | None = None,
        judge_published: Callable[[PublishedTable], Verdict] | None = None, cross_tabs: tuple[CrossTab, ...] = (),
    ) -> FiguresProtection:  # fmt: skip
        """Figures with their verdicts."""
        manifest = {"sfumato": __version__, "verdicts": [verdict.public() for verdict in verdicts]}
        evaluation = Evaluation(manifest=manifest, verdicts=verdicts)
        return cls(
            tables=tables, facts=facts, guarantee=guarantee, plan=plan, evaluation=evaluation, hand_out=unmet,
            owner=owner or {}, named_account=named_account, exact=exact, judge_published=judge_published,
            cross_tabs=cross_tabs,
        )  # fmt: skip

    @property
    def _named_account(self) -> tuple[str | Path, str] | None:
        return self.named_account

    @property
    def judgement(self) -> Judgement:
        states = [verdict.state for verdict in self.evaluation.verdicts]
        return judge(states, limited=True, promised=self.promise)  # the rule of the method is the condition

    @property
    def promise(self) -> bool:
        return self.guarantee is not None

    @property
    def guarantees(self) -> tuple[Guarantee, ...]:
        return () if self.guarantee is None else (self.guarantee,)

    @property
    def written_plan(self) -> str:
        return self.plan

    def _native(self) -> dict[str, pl.DataFrame]:
        return dict(self.tables)

    def __repr__(self) -> str:
        state = f"not met: {len(self.unmet)}" if self.unmet else "met"
        return f"<{type(self).__name__}: {counted(len(self.tables), 'table')}, {state}>"

    def show(self, console: Console | None = None) -> None:
        from sfumato.reports.terminal import cross_tab_lines, output_console, print_content, verdict_lines

        out = output_console(console)
        for line in self.report().sentences:
            out.out(line, highlight=False)
        out.print(verdict_lines([verdict.to_dict() for verdict in self.evaluation.verdicts]))
        for name, value in {**self.facts, **self.owner}.items():
            if not isinstance(value, list | dict):
                out.out(f"  {name.replace('_', ' ')}: {value}", highlight=False)
        for tab in self.cross_tabs:
            print_content(out, cross_tab_lines(tab.public.to_dict()))

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, object] | None = None) -> dict[str, object]:
        verdicts = [verdict.to_dict() for verdict in self.evaluation.verdicts]
        return {
            **self._places(folder), **self.facts, **self.owner, **self._stated(),
            "standing": str(self.judgement.standing), "verdicts": verdicts, "files": (manifest or {}).get("files", {}),
        }  # fmt: skip

    def _stated(self) -> dict[str, object]:
        return {} if self.guarantee is None else {"guarantee": self.guarantee.to_dict()}

    def _document(self) -> dict[str, object]:
        verdicts = [verdict.to_dict() for verdict in self.evaluation.verdicts]
        tables = {name: {"lines": frame.height, "columns": frame.columns} for name, frame in self.tables.items()}
        return {
            "kind": self.release_kind,
            "tables": tables,
            "facts": dict(self.facts),
            **self._stated(),
            "verdicts": verdicts,
            **({"cross_tabs": [tab.to_dict() for tab in self.cross_tabs]} if self.cross_tabs else {}),
        }

    def _write_data(self, public: PublicFolder, private: Path, document: Plain) -> Mapping[str, Leaving[object]]:
        why = self.page.why(document)
        for name, frame in self.tables.items():
            public.table(f"{name}.csv", Leaving(frame, why))
        if self.cross_tabs:
            [(name, cells)] = self.tables.items()
            write_cross_tabs(public, Leaving(self.cross_tabs, why), cells, name=name)
        shown = {**self.facts, **self._stated(), "verdicts": self.evaluation.manifest["verdicts"]}
        return {"sfumato": declared(__version__), **{key: Leaving(value, why) for key, value in shown.items()}}


def measure_figures(release: Path, exact: ExactTables) -> MeasureResults:
    """How many figures of a release folder are missing, and how far the others are from the exact ones."""
    files, truth = load_manifest(release)["files"], exact()
    shown = {name: pl.read_csv(release / f"{name}.csv", infer_schema=False) for name in truth if f"{name}.csv" in files}
    if not shown:
        raise BadParameter("The release has no table of this plan.", fix="Name the plan that made the release.")
    return MeasureResults(results=figure_errors(shown, truth))


def original_required(what: str) -> BadParameter:
    """The refusal of a verb that needs the plan of a release."""
    return BadParameter(
        f"`original` is required: the plan of {what}.", fix="Pass the plan as `original`.", option="original"
    )


def check_guarantee(release: str | Path) -> CheckResults:
    """Differential privacy is a property of the mechanism, which no released figure shows: it is not checked.

    What is checked is that every file is the one that the manifest names.
    """
    load_manifest(Path(release))
    return guarantee_not_checked()


def guarantee_not_checked() -> CheckResults:
    """The verdict on a guarantee of differential privacy, from what is released."""
    reason = "differential privacy is a property of the mechanism; released figures do not show it"
    return CheckResults(verdicts=(Verdict(model="differential-privacy", state=State.NOT_CHECKED, reason=reason),))
