"""Privacy models of graphs."""
