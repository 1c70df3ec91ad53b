"""``sfumato.decide``: decide the roles of columns in the text of a recipe."""

from sfumato.recipe.decide import decide

__all__ = ["decide"]
