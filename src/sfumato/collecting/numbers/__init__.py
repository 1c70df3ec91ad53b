"""Protocols for numbers between public bounds. Each module defines one."""
