"""RAPPOR from a plan: the device keeps the permanent response of each word, the collector reads reports as lines."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field

from sfumato.collecting.random_source import OS_ENTROPY, RandomSource
from sfumato.collecting.rappor import DecodedWord, PermanentResponse, Rappor
from sfumato.data.atomic import locked, write_secret
from sfumato.data.yaml_documents import load_document
from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.errors import BadParameter, NotThatFormat
from sfumato.field_docs import DocumentedModel

_SHORT = 16


class RapporPlan(DocumentedModel):
    """A collection by RAPPOR: its public parameters and how many different words one device may report."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    survey: str
    """Public name of the collection."""
    words: Annotated[int, Field(ge=1)]
    """Different words that one device may report over time; each one spends the loss of all reports again."""
    rappor: Rappor
    """Bloom filter and probabilities."""

    @classmethod
    def load(cls, path: Path) -> RapporPlan:
        """Read a plan; all problems in one error, with their lines."""
        return load_document(cls, path, kind="RAPPOR plan", fix="Write one as docs/collecting.md shows.")

    def fingerprint(self) -> str:
        """Identifies what devices and collector must agree on."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_SHORT]

    def loss_of_device(self) -> PrivacyLoss:
        """Loss of one device over any number of reports."""
        return pure(self.words * self.rappor.loss_of_all_reports().size)


def report_of_device(
    plan: RapporPlan, word: str, *, memory: Path, source: RandomSource = OS_ENTROPY
) -> dict[str, object]:
    """One report of one device. Its permanent response is drawn at the first report of a word and kept in ``memory``.

    The memory is locked while a response is drawn and is on disk before the report is returned: a lost memory would
    mean a second permanent response, which costs the loss again.
    """
    with locked(memory):
        kept = _remembered(memory, plan)
        if word not in kept:
            if len(kept) >= plan.words:
                raise BadParameter(
                    "This device has reported as many different words as the plan's privacy loss covers.",
                    fix="State more `words` in the plan; its loss grows with them.",
                )
            drawn = plan.rappor.permanent([word], source=source)
            kept[word] = {"cohort": int(drawn.cohorts[0]), "bits": _packed(drawn.bits[0])}
            document = {"plan": plan.fingerprint(), "permanent": kept}
            write_secret(memory, json.dumps(document).encode(), force=True)
    own = kept[word]
    permanent = PermanentResponse(
        cohorts=np.array([own["cohort"]]), bits=_unpacked(own["bits"], plan.rappor.bits)[None]
    )
    return _line(plan, own["cohort"], plan.rappor.report(permanent, source=source)[0])


def trial_reports(
    plan: RapporPlan, words: list[str], *, source: RandomSource = OS_ENTROPY
) -> Iterator[dict[str, object]]:
    """One report of each of many devices, for trials with words that are known to one machine."""
    kept = plan.rappor.permanent(words, source=source)
    bits = plan.rappor.report(kept, source=source)
    for cohort, row in zip(kept.cohorts.tolist(), bits, strict=True):
        yield _line(plan, cohort, row)


def decode_lines(
    plan: RapporPlan, lines: Iterable[str], candidates: list[str], *, significance: float = 0.05
) -> tuple[int, list[DecodedWord]]:
    """Number of reports, and the candidate words that occur significantly often."""
    cohorts, reports = [], []
    for line in lines:
        try:
            report = json.loads(line)
            stated, cohort, bits = report["plan"], int(report["cohort"]), _unpacked(report["report"], plan.rappor.bits)
        except (ValueError, KeyError, TypeError):
            raise NotThatFormat("A line is no RAPPOR report.", fix="Write reports with `collect rappor`.") from None
        if stated != plan.fingerprint() or not 0 <= cohort < plan.rappor.cohorts:
            raise BadParameter("A report belongs to another plan.", fix="Use the plan of the devices.")
        cohorts.append(cohort)
        reports.append(bits)
    if not reports:
        raise BadParameter("There is no report.", fix="Name a file with at least one report.")
    found = plan.rappor.estimate(cohorts, np.array(reports), candidates, significance=significance)
    return len(reports), found


def _line(plan: RapporPlan, cohort: int, bits: npt.NDArray[np.bool_]) -> dict[str, object]:
    return {"plan": plan.fingerprint(), "cohort": cohort, "report": _packed(bits)}


def _packed(bits: npt.NDArray[np.bool_]) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def _unpacked(text: str, bits: int) -> npt.NDArray[np.bool_]:
    packed = np.frombuffer(base64.b64decode(text, validate=True), dtype=np.uint8)
    if len(packed) != (bits + 7) // 8:
        raise ValueError("wrong length")
    return np.unpackbits(packed, count=bits).astype(np.bool_)


def _remembered(memory: Path, plan: RapporPlan) -> dict[str, dict[str, Any]]:
    if not memory.exists():
        return {}
    try:
        document = json.loads(memory.read_text(encoding="utf-8"))
        stated, kept = document["plan"], dict(document["permanent"])
        for own in kept.values():
            _unpacked(own["bits"], plan.rappor.bits)
            sound = isinstance(own["cohort"], int) and 0 <= own["cohort"] < plan.rappor.cohorts
            if stated == plan.fingerprint() and not sound:
                raise ValueError("no cohort")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise NotThatFormat(
            f"{memory} is damaged, or is no memory of a device for this plan. No report was drawn.",
            fix="Restore the file. If it is lost, this device must not report to this plan any more.",
            path=str(memory),
        ) from None
    if stated != plan.fingerprint():
        raise BadParameter("The memory file belongs to another plan.", fix="Use one memory file per plan.")
    return kept
