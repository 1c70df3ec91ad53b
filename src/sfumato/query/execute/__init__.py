"""Plans run on an engine: SQL generation, contribution bounding, noise."""
