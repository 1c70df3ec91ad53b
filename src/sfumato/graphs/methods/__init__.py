"""Methods that protect a graph."""
