"""Independent verification of a release: SQL counts and textbook formulas that share no code with the search."""
