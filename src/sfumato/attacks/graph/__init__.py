"""Attacks on released graphs."""
