"""Fixtures for all tests."""

from java import java
from postgres import postgresql

__all__ = ["java", "postgresql"]
