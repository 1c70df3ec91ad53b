"""Noise mechanisms: one per module, found by its file name. Each states its loss and draws exact noise."""
