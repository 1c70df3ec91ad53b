"""Column removal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.release import Change

if TYPE_CHECKING:
    from sfumato.engines.stored_table import StoredTable


class Remove(Step):
    """Remove columns from the release.

    Identifiers that no other step has replaced, and columns with the role ``drop``, are always removed. Removing
    identifiers alone does not make a table anonymous: the remaining quasi-identifiers single out most people.
    """

    report_phrase = "removed"
    truthful = True
    simulable = False
    leaves_values = True
    out_of_core = True
    main = "columns"
    examples = ({"columns": ["name"]},)
    reference = "Sweeney (2000), Simple Demographics Often Identify People Uniquely, Carnegie Mellon University"

    columns: tuple[str, ...] | None = None
    """The columns to remove. Default: all identifiers, and columns with the role ``drop``."""

    def apply(self, data: Data, context: Context) -> Change:
        names = self._names(data)
        frame = data.table.frame.drop(names)
        return Change(table=data.table.with_frame(frame), public={"columns": list(names)}, touched=frozenset(names))

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:

        names = self._names(table.empty)
        return StoredChange(table=table.without(names), public={"columns": list(names)}, touched=frozenset(names))

    def _names(self, data: Data) -> tuple[str, ...]:
        names = data.removed() if self.columns is None else self.columns
        data.table.require(names)
        if set(names) >= set(data.table.columns):
            raise NotApplicable(
                "remove: every column would be removed, so nothing is left to release.",
                fix="Give at least one column another role than `identifier`, or pseudonymize one.",
            )
        return names
