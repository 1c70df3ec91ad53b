"""Mondrian multidimensional partitioning."""
