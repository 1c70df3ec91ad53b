"""An independent second opinion on a release: plain counts and textbook formulas, sharing no code with the search."""
