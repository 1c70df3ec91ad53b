"""The recipe: one file that is the truth about how a release was made."""

from sfumato.recipe.recipe import Accepted, Limits, Recipe, Source

__all__ = ["Accepted", "Limits", "Recipe", "Source"]
