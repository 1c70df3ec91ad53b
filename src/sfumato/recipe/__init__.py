"""The recipe: one file that is the truth about how a release was made."""

from sfumato.data.source import Source
from sfumato.recipe.recipe import Accepted, Limits, Recipe

__all__ = ["Accepted", "Limits", "Recipe", "Source"]
