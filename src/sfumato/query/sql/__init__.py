"""From SQL text to a plan: parsing, name binding, and the expressions and functions that are allowed."""
