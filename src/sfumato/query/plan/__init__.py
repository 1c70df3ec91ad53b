"""Query plans: relational nodes, aggregates, noise, and the privacy loss computed by two routes."""
