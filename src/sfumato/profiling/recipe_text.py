"""A proposal as a commented recipe: each column with the reason for its role."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from sfumato.data.source import Source
from sfumato.data.yaml_documents import yaml_flow, yaml_scalar
from sfumato.dataset import Kind, Role
from sfumato.dataset.document import sql_name
from sfumato.profiling.proposal import ColumnProposal, Proposal
from sfumato.profiling.safe_harbor import SafeHarborPlan, safe_harbor_plan
from sfumato.wording import counted

_WIDTH = 110
_PERSON = (
    "Queries need to know whose privacy is kept: `row` if every row is a different person, else the column with the"
    " person's id."
)
DOMAINS = (
    "Queries sum and group columns with a domain only: add domain: {low: 0, high: 120}, {values: [a, b]} or"
    " {first: 2020-01-01, last: 2024-12-31}, from what is possible and not from the data."
)
_COMBINATIONS = 7
"""Combinations of columns that the recipe names as identifying."""


def to_yaml(
    proposal: Proposal,
    source: Source | str | None,
    *,
    unit: str | None = None,
    k: int | None = None,
    preset: str | None = None,
    step: Mapping[str, object] | None = None,
    reasons: Sequence[str] = (),
) -> str:
    """The proposal as recipe text. Without ``source`` the recipe names no data and is run on a table passed to it.
    ``unit`` is whose privacy is kept, if the owner said so: ``row``, or the column that identifies a person.

    Without ``k`` the k-anonymity model is left as a comment for the data owner to fill in. ``preset`` is the text of a
    recipe without data and columns, whose models (with ``k``, if there is one), steps and limits are copied. ``step``
    is the masking step, with the ``reasons`` for it as comment lines; generalization if left out.
    """
    plan = _plan(proposal, preset)
    proposal = for_preset(proposal, preset)
    return "\n".join(
        [
            *_head(proposal),
            "sfumato: 1",
            *data_lines(source),
            *unit_lines(proposal, unit),
            *comment("A seed repeats a run, together with the random key in the private folder of the release."),
            "# seed: ",
            "",
            *([] if source is None else comment(DOMAINS)),
            "columns:",
            *(line for column in proposal.columns for line in column_lines(column)),
            "",
            *(_own(proposal, k, step, reasons) if preset is None else _preset(proposal, preset, plan, k, reasons)),
            "",
        ]
    )


def data_lines(source: Source | str | None) -> Iterator[str]:
    """Where the data is, and under which name and in which ledger its budgets are kept."""
    if source is None:
        return
    source = Source(location=source) if isinstance(source, str) else source
    name = sql_name(source.location)
    yield f"dataset: {yaml_scalar(name)}"
    yield f"data: {yaml_flow(source.to_dict())}"
    yield f"ledger: {yaml_scalar(f'{name}-ledger.db')}      # budgets of queries and noisy releases"


def unit_lines(proposal: Proposal, unit: str | None) -> Iterator[str]:
    """Whose privacy is kept, if that is known."""
    own = unit or proposal.unit
    if own is None:
        yield from comment(_PERSON)
        yield "# unit: row"
    elif own == "row":
        yield "unit: row      # every row is a different person"
    else:
        yield from comment("People have several rows; this column says whose a row is. It is not released.")
        yield f"unit: {yaml_scalar(own)}"
        yield "# bounds: {rows: , groups: }      # for queries: most rows of a person per group, and groups of a person"


def _own(proposal: Proposal, k: int | None, step: Mapping[str, object] | None, reasons: Sequence[str]) -> Iterator[str]:
    """Models, steps and further sections without a preset."""
    yield from _models(proposal, k)
    yield ""
    yield from _steps(proposal, step, reasons)
    yield from _events(proposal)
    yield from _texts(proposal)
    yield ""
    yield from comment(
        "Without these lines the default attacks and measures run. The attacker knows all quasi-identifiers."
    )
    yield "# attacks:"
    yield "#  - linkage: {auxiliary: voters.csv}      # an external file with names"
    yield "# measures: [marginals, pairs]"
    yield from comment("The largest share of people that an attack may identify. Without a limit there is no verdict.")
    yield "# limits: {risk: 0.09}"


def _preset(
    proposal: Proposal, text: str, plan: SafeHarborPlan | None, k: int | None, reasons: Sequence[str]
) -> Iterator[str]:
    """The lines of the preset. Its models name no column: they are about all sensitive columns of the run."""
    for line in text.rstrip("\n").split("\n"):
        if k is not None:
            line = re.sub(r"k-anonymity: \{k: \d+\}", f"k-anonymity: {{k: {k}}}", line)
        if line == "models:":
            for reason in reasons:
                yield from comment(reason)
        if line == "sfumato: 1":
            yield ""
        elif line == "steps:":
            yield line
            yield from _pseudonyms(proposal)
        elif plan is not None and line == "  - safe-harbor: {}":
            found = f"  - safe-harbor: {yaml_flow(plan.model)}"
            yield found if plan.model else f"# {line.strip()}      # no date, ZIP code or age was found"
        elif plan is not None:
            yield line.replace("lowest: {}", f"lowest: {yaml_flow(plan.lowest)}")
        else:
            yield line


def _plan(proposal: Proposal, preset: str | None) -> SafeHarborPlan | None:
    if preset is None or "safe-harbor: {}" not in preset:
        return None
    recognized = {column.name: (column.finding.detector, column.role) for column in proposal.columns}
    return safe_harbor_plan(recognized, year=date.today().year)


def for_preset(proposal: Proposal, preset: str | None) -> Proposal:
    """The proposal with the roles and hierarchies that a preset demands."""
    plan = _plan(proposal, preset)
    if plan is None:
        return proposal
    columns = []
    for column in proposal.columns:
        setting = plan.columns.get(column.name, {})
        if "role" in setting:
            finding = replace(column.finding, role=Role(setting["role"]))
            column = replace(column, finding=finding, hierarchy=None)
        columns.append(replace(column, hierarchy=setting["hierarchy"]) if "hierarchy" in setting else column)
    return replace(proposal, columns=tuple(columns))


def _head(proposal: Proposal) -> Iterator[str]:
    yield from comment(
        f"A proposal for {counted(len(proposal.columns), 'column')} and {counted(proposal.whole, 'row')}. Review it:"
        " read the reason above each column and change what is wrong. Roles: identifier (removed), quasi (known to"
        " outsiders, generalized), sensitive (must stay secret), weight, household, plain (released unchanged),"
        " drop (removed), undecided."
    )
    if undecided := proposal.of_role(Role.UNDECIDED):
        yield "#"
        yield from comment(
            f"{counted(len(undecided), 'column')} {'is' if len(undecided) == 1 else 'are'} undecided. `sfumato protect`"
            " refuses until somebody decides: change the role here, or run `sfumato decide`."
        )
    if proposal.rows < proposal.whole:
        yield "#"
        yield from comment(
            f"Only {proposal.rows} of the rows were examined: the first ones, and others spread evenly over the rest."
            " The whole table has fewer unique rows than stated here, and rare values may have been missed."
        )
    for warning in proposal.warnings():
        yield "#"
        yield from comment(warning)
    lines = list(_alone(proposal))
    if lines:
        yield "#"
        yield "# Unique rows. An attacker who knows these columns of a person finds their row:"
        yield from lines


def _alone(proposal: Proposal) -> Iterator[str]:
    for combination, why in proposal.combinations()[:_COMBINATIONS]:
        share = f"{combination.unique:.1%} of the rows"
        yield from comment(f"{share}: {' + '.join(combination.columns)} ({why})", indent="#   ")


def column_lines(column: ColumnProposal) -> Iterator[str]:
    """A column with its role, under the reason for it as a comment."""
    yield from comment(column.reason, indent="  # ")
    for placeholder in column.placeholders:
        codes, rows = yaml_flow(placeholder.codes), f"{placeholder.rows} row{'s' if placeholder.rows != 1 else ''}"
        if placeholder.sure:
            text = f"{codes} ({rows}) read as missing: {placeholder.reason}; remove answers from missing_codes"
        else:
            text = f"{codes} ({rows}) may mean no answer ({placeholder.reason}): if so, add missing_codes: {codes}"
        yield from comment(text, indent="  # ")
    if column.role is Role.QUASI and column.hierarchy is None and column.distinct > 2:
        yield "  # no hierarchy: the only coarser value is *; a file or a taxonomy would preserve more detail"
    setting: dict[str, object] = {"role": column.role.value, "kind": column.kind.value}
    if column.kind is Kind.CATEGORY and column.role is Role.IDENTIFIER:
        del setting["kind"]
    if column.hierarchy is not None:
        setting["hierarchy"] = column.hierarchy
    if column.missing_codes:
        setting["missing_codes"] = column.missing_codes
    yield f"  {yaml_scalar(column.name)}: {yaml_flow(setting)}"


def _models(proposal: Proposal, k: int | None) -> Iterator[str]:
    yield from comment(
        "k: every row shares its quasi-identifiers with at least k - 1 others. There is no default. Common choices: 3"
        " for colleagues under contract, 5 for research files, 12 for public files (a risk of at most 0.09)."
    )
    if k is None:
        yield "models:"
        yield "#  - k-anonymity: {k: }      # fill in k and remove the # at the beginning of the line"
    else:
        yield "models:"
        yield f"  - k-anonymity: {{k: {k}}}"
    if proposal.of_role(Role.SENSITIVE):
        yield "#  - l-diversity: {l: }      # for every sensitive column: otherwise a class may have one value only"


def _steps(proposal: Proposal, step: Mapping[str, object] | None, reasons: Sequence[str]) -> Iterator[str]:
    if not proposal.of_role(Role.QUASI):
        yield from comment("There is no quasi-identifier, so there is nothing to generalize. Identifiers are removed.")
        yield "steps: []"
        return
    yield "# Identifiers are removed automatically."
    for line in reasons:
        yield f"# {line}"
    if step is None or "generalize" in step:
        step = {"generalize": {"search": "auto", "seconds": 60, "suppression": 0.05, "metric": "loss"}}
        yield from comment(
            "Full-domain generalization: one level per column. Up to the share `suppression` of the rows may be"
            " suppressed. The search proves the best levels of these hierarchies if there are few enough combinations"
            " and `seconds` suffice; else it takes the best that it finds. The outcome says which."
        )
    elif "microaggregate" in step:
        yield from comment("Microaggregation releases means of groups, not true values of persons.")
    yield "steps:"
    yield from _pseudonyms(proposal)
    yield from (f"  - {name}: {yaml_flow(setting)}" if setting else f"  - {name}" for name, setting in step.items())


def _events(proposal: Proposal) -> Iterator[str]:
    """Steps for logs, baskets and ratings as a comment, if people have several rows."""
    columns = [column for column in proposal.columns if column.finding.detector != "free text"]
    items = [one.name for one in columns if one.name != proposal.unit and one.kind in (Kind.CATEGORY, Kind.INTEGER)]
    if proposal.unit is None or not items:
        return
    yield from comment(
        "People have several rows. If rows are events (purchases, searches, ratings, places), release the unit as a"
        " pseudonym, protect the sets of items with one of the methods of the manual's page on logs, and attack them:"
    )
    yield f"#  - pseudonymize: {yaml_flow({'columns': [proposal.unit], 'key': 'pseudonyms.key'})}"
    yield f"#  - suppress-items: {{item: {yaml_scalar(items[0])}, k: , m: 2}}      # fill in k"
    yield f"# attacks: [sparse-linkage: {yaml_flow({'item': items[0]})}]"
    yield f"# measures: [item-uniqueness: {yaml_flow({'item': items[0], 'events': 4})}]"


def _texts(proposal: Proposal) -> Iterator[str]:
    """The step for free text as a comment."""
    names = [column.name for column in proposal.columns if column.finding.detector == "free text"]
    if names:
        yield from comment(
            "Texts are removed. To release them, make them sensitive and add this step. A person must read what it"
            " leaves and sign with `signed_by`:"
        )
        yield f"#  - deidentify-text: {yaml_flow({'columns': names, 'days': 180})}"
        yield f"# attacks: [rare-terms: {yaml_flow({'item': names[0]})}]"
        yield f"# measures: [text-recall: {yaml_flow({'column': names[0]})}]"


def _pseudonyms(proposal: Proposal) -> Iterator[str]:
    """A step that replaces household numbers: members stay together, and no other file has the same numbers."""
    names = proposal.of_role(Role.HOUSEHOLD)
    if names:
        yield "  # household numbers become pseudonyms; the secret key is made on the first run"
        yield f"  - pseudonymize: {yaml_flow({'key': 'household.key', 'columns': names})}"


def comment(text: str, *, indent: str = "# ") -> Iterator[str]:
    """The text as comment lines. Control characters and line breaks in column names are replaced: they would end the
    comment or are not valid YAML."""
    line = ""
    for word in ("".join(sign if sign.isprintable() else "·" for sign in word) for word in text.split()):
        if line and len(line) + len(word) + 1 > _WIDTH - len(indent):
            yield indent + line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield indent + line
