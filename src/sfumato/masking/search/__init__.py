"""Searches for a table that meets the privacy models: lattice, Mondrian, local recoding, cell suppression."""
