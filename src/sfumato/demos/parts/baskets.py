"""Demo: result privacy. A shop shares its baskets and wants to keep one association rule to itself."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sfumato.api.attack import attack
from sfumato.api.protect import protect
from sfumato.attacks.inference.hidden_results import HiddenResults
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.dataset import Schema
from sfumato.demos.base import Demo, Say
from sfumato.evaluation.formatting import percent
from sfumato.masking import HideResults, ResultPrivacy
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.rng import Rng

SUPPORT, CONFIDENCE = 0.1, 0.5
RULE = {"if": {"bread": True}, "then": {"wine": True}}


class BasketsDemo(Demo):
    """Hiding an association rule: a shop shares its baskets without showing that bread goes with its own wine.

    All baskets in this demo are synthetic.
    """

    reference = "Verykios et al. (2004), Association rule hiding, doi:10.1109/TKDE.2004.1269668"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        baskets = _baskets(Rng(self.seed))
        write(Table(frame=baskets), folder / "baskets.csv", force=True)
        say(
            f"\n[bold]1. The rule.[/bold] Of {baskets.height} baskets, {percent(_confidence(baskets))} of those with "
            f"bread have wine. Analysts look at rules with a support of {percent(SUPPORT)} and a confidence of "
            f"{percent(CONFIDENCE)}."
        )
        model = ResultPrivacy(results=[RULE], support=SUPPORT, confidence=CONFIDENCE)
        recipe = Recipe(schema=Schema.of(baskets), models=[model], steps=[HideResults(longest=2)], seed=self.seed)
        done = protect(recipe, baskets, progress=progress)
        removed = sum(abs(int(baskets[name].sum()) - int(done.data[name].sum())) for name in baskets.columns)
        say(
            f"\n[bold]2. The rule is hidden.[/bold] {removed} items leave the baskets, the fewest that suffice. The "
            f"confidence is now {percent(_confidence(done.data))}; result privacy {done.verdicts[0].state}."
        )
        parts = [HiddenResults(longest=2), HiddenResults(longest=2, earlier=folder / "baskets.csv")]
        results = attack(done, original=baskets, attacks=parts, seed=self.seed, progress=progress)
        risks = [entry["risk"] for entry in results.entries()]
        say(
            f"\n[bold]3. The attacker.[/bold] The release says that something was hidden, and its thresholds. Looking "
            f"for item sets that just miss them finds {_share(risks[0])} of what was hidden, an earlier version of the "
            f"file {_share(risks[1])}. Result privacy hides a result from an algorithm, not from an attacker."
        )
        figures = {"baskets": baskets.height, "removed_items": removed, "state": str(done.verdicts[0].state)}
        return {**figures, "risk": risks[0], "risk_with_earlier_version": risks[1]}


def _share(risk: float | None) -> str:
    return "nothing" if risk is None else percent(risk)


def _confidence(frame: pl.DataFrame) -> float:
    """The share of baskets with bread that have wine."""
    return float(frame.filter(pl.col("bread"))["wine"].mean())  # type: ignore[arg-type]


def _baskets(rng: Rng) -> pl.DataFrame:
    draw, count = rng.child("baskets").generator, 300
    bread = draw.random(count) < 0.4
    chance = {"milk": 0.5, "cheese": 0.3, "fruit": 0.35}
    wine = draw.random(count) < (0.12 + 0.45 * bread)
    return pl.DataFrame({"bread": bread, "wine": wine, **{n: draw.random(count) < c for n, c in chance.items()}})
