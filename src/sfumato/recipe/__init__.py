"""The recipe: one file that is the truth about how a release was made."""

from sfumato.recipe.recipe import Limits, Recipe, Source

__all__ = ["Limits", "Recipe", "Source"]
