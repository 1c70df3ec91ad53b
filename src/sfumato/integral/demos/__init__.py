"""Demos of integral privacy."""
