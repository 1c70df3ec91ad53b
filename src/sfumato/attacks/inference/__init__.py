"""Attacks that infer a sensitive value, membership, or a description that singles a person out."""
