"""Demos of query auditing and of attacks on classical policies."""
