"""Leave columns out of the release."""

from __future__ import annotations

from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step
from sfumato.release import Change
from sfumato.schema import Dataset

__all__ = ["Remove"]


class Remove(Step):
    """Leave columns out of the release.

    Identifiers that no other step has replaced are always removed, whether or not a recipe says so. Removing names
    alone does not make a table anonymous: the quasi-identifiers that stay single most people out.
    """

    truthful = True
    simulable = False
    leaves_values = True
    main = "columns"
    examples = ({"columns": ["name"]},)
    reference = "Sweeney (2000), Simple Demographics Often Identify People Uniquely, Carnegie Mellon University"

    columns: tuple[str, ...] | None = None
    """The columns to remove; all identifiers when left out."""

    def apply(self, data: Dataset, context: Context) -> Change:
        names = data.identifiers if self.columns is None else self.columns
        data.table.require(names)
        if set(names) >= set(data.table.columns):
            raise NotApplicable(
                "remove: every column would be removed, so nothing is left to release.",
                fix="Give at least one column another role than `identifier`, or pseudonymize one.",
            )
        frame = data.table.frame.drop(names)
        return Change(table=data.table.with_frame(frame), public={"columns": list(names)}, touched=frozenset(names))
