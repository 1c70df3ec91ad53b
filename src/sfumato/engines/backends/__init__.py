"""Engines: one per module or package, found by its name. Each runs plans where the data lies."""
