"""Full-domain generalization: one level per column, and the search for the best combination of levels."""
