"""Deterministic learners whose models can be compared exactly. One module per learner."""
