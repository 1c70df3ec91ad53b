"""Frequency protocols. Each module defines one."""
