"""Evaluation of attacks: main, baseline and control arms, success criteria, outcomes and intervals."""
