"""Profiling of a table: proposed roles of its columns, and the column combinations that single people out."""

from sfumato.profiling.proposal import ColumnProposal, Proposal, propose
from sfumato.profiling.recipe_text import to_yaml
from sfumato.profiling.singling_out import Combination, Singling, single_out, unique_share

__all__ = ["ColumnProposal", "Combination", "Proposal", "Singling", "propose", "single_out", "to_yaml", "unique_share"]
