"""Differential privacy: exact noise, its loss, and the budgets it is drawn from."""
