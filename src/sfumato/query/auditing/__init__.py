"""Exact answers, and when to refuse them: auditors that decide from the queries already answered."""
