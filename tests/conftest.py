"""Fixtures for all tests."""

from postgres import postgresql

__all__ = ["postgresql"]
