"""Published figures: the result of plans whose release is a set of tables, with or without a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from sfumato import __version__
from sfumato.api.protection import PAGE, PlainReport, Protection, json_text, load_document, release_readme
from sfumato.api.results import CheckResults, MeasureResults
from sfumato.errors import BadParameter
from sfumato.evaluation import Evaluation
from sfumato.measures.figure_errors import figure_errors
from sfumato.release import State, Verdict
from sfumato.release.folder import PRIVATE, load_manifest
from sfumato.release.guarantee import Guarantee
from sfumato.release.public_folder import Leaving, PublicFolder, Why, declared
from sfumato.release.standing import Judgement, judge
from sfumato.reports import README, Audience
from sfumato.reports.figures_page import figures_html, figures_sentences
from sfumato.tables.cross_tab import CrossTab, write_cross_tabs
from sfumato.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

ExactTables = Callable[[], Mapping[str, pl.DataFrame]]
"""Calculates the tables of a plan without protection, by name."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class FiguresProtection(Protection):
    """Tables that may be published, public facts about them, and the plan that made them."""

    release_kind: ClassVar[str] = "tables"

    tables: Mapping[str, pl.DataFrame]
    """The tables by name."""
    facts: Mapping[str, Any]
    """The method and its parameters, for readers of the tables."""
    guarantee: Guarantee | None
    """The guarantee of differential privacy, if there is one."""
    plan: str
    """The plan as it was written. It stays in the private folder."""
    owner: Mapping[str, Any] = field(default_factory=dict)
    """Counts of the original, for the owner alone."""
    named_account: tuple[str | Path, str] | None = None
    """The ledger and the data set that the plan names."""
    exact: ExactTables | None = None
    """Calculates the same tables without protection, for the owner alone."""
    cross_tabs: tuple[CrossTab, ...] = ()
    """The tables as cross-tabs, with statuses of suppressed cells for the owner alone."""

    @classmethod
    def of(
        cls, tables: Mapping[str, pl.DataFrame], facts: Mapping[str, Any], verdicts: tuple[Verdict, ...], *,
        guarantee: Guarantee | None, plan: str, unmet: bool, owner: Mapping[str, Any] | None = None,
        named_account: tuple[str | Path, str] | None = None, exact: ExactTables | None = None,
        cross_tabs: tuple[CrossTab, ...] = (),
    ) -> FiguresProtection:  # fmt: skip
        """Figures with their verdicts."""
        manifest = {"sfumato": __version__, "verdicts": [verdict.public() for verdict in verdicts]}
        evaluation = Evaluation(manifest=manifest, verdicts=verdicts)
        return cls(
            tables=tables, facts=facts, guarantee=guarantee, plan=plan, evaluation=evaluation, hand_out=unmet,
            owner=owner or {}, named_account=named_account, exact=exact, cross_tabs=cross_tabs,
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
        for line in figures_sentences(self._document()):
            out.out(line, highlight=False)
        out.print(verdict_lines([verdict.to_dict() for verdict in self.evaluation.verdicts]))
        for name, value in {**self.facts, **self.owner}.items():
            if not isinstance(value, list | dict):
                out.out(f"  {name.replace('_', ' ')}: {value}", highlight=False)
        for tab in self.cross_tabs:
            print_content(out, cross_tab_lines(tab.public.to_dict()))

    def to_dict(self, folder: Path | None = None, manifest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        verdicts = [verdict.to_dict() for verdict in self.evaluation.verdicts]
        return {
            **self._places(folder), **self.facts, **self.owner, **self._stated(),
            "standing": str(self.judgement.standing), "verdicts": verdicts, "files": (manifest or {}).get("files", {}),
        }  # fmt: skip

    def _stated(self) -> dict[str, object]:
        return {} if self.guarantee is None else {"guarantee": self.guarantee.to_dict()}

    def report(self, *, audience: Audience = "internal") -> PlainReport:
        return figures_report(self._document(), audience=audience)

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

    def _write(self, public: PublicFolder, private: Path, suffix: str | None) -> Mapping[str, object]:
        if suffix is not None:
            raise BadParameter("Tables are written as CSV.", fix="Leave the format out.")
        # Without a guarantee, what the tables show was computed with the original and is protected by the method.
        why = Why.PAID if self.promise else Why.MEASURED
        for name, frame in self.tables.items():
            public.table(f"{name}.csv", Leaving(frame, why))
        write_cross_tabs(public, Leaving(self.cross_tabs, why))
        document = self._document()
        public.text(PAGE, Leaving(self.report(audience="external").html, why))
        (private / PAGE).write_text(self.report().html, encoding="utf-8")
        (private / PRIVATE).write_text(json_text(document), encoding="utf-8")
        (private / "plan.yaml").write_text(self.plan, encoding="utf-8")
        files = [path.name for path in public.path.iterdir()]
        public.text(README, Leaving(release_readme(self.release_kind, files, *figures_sentences(document)), why))
        facts = {key: Leaving(value, why) for key, value in {**self.facts, **self._stated()}.items()}
        shown = {
            "sfumato": declared(__version__),
            **facts,
            "verdicts": Leaving(self.evaluation.manifest["verdicts"], why),
        }
        return public.manifest(shown, kind=self.release_kind)


def report_figures(release: str | Path, *, audience: Audience = "internal") -> PlainReport:
    """The report of published figures, from the private folder."""
    return figures_report(load_document(release), audience=audience)


def figures_report(document: Mapping[str, Any], *, audience: Audience) -> PlainReport:
    """The report of a document of the private folder.

    Readers see no counts and reasons of verdicts, and not which suppressed cells are sensitive themselves.
    """
    promise = "guarantee" in document
    shown = dict(document)
    if audience == "external":
        shown["verdicts"] = [{key: one.get(key) for key in ("model", "state", "wanted")} for one in shown["verdicts"]]
        tabs = shown.get("cross_tabs", ())
        if tabs:
            shown["cross_tabs"] = [{key: one[key] for key in ("title", "head", "labels", "lines")} for one in tabs]
    why = Why.PAID if promise else Why.MEASURED
    return PlainReport(
        document=shown, page=lambda seen: Leaving(figures_html(seen, internal=audience == "internal"), why),
        promise=promise, audience=audience,
    )  # fmt: skip


def measure_figures(release: Path, exact: ExactTables) -> MeasureResults:
    """How many figures of a release folder are missing, and how far the others are from the exact ones."""
    files, truth = load_manifest(release)["files"], exact()
    shown = {name: pl.read_csv(release / f"{name}.csv", infer_schema=False) for name in truth if f"{name}.csv" in files}
    if not shown:
        raise BadParameter("The release has no table of this plan.", fix="Name the plan that made the release.")
    return MeasureResults(results=figure_errors(shown, truth))


def original_required(what: str) -> BadParameter:
    """The refusal of a verb that needs the plan of a release."""
    return BadParameter(f"`original` is required: the plan of {what}.", fix="Pass --original PLAN.")


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
