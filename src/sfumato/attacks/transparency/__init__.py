"""Attacks that use the published masking method and its parameters."""
