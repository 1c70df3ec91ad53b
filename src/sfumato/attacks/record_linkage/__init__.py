"""Attacks that link known people to released rows."""
