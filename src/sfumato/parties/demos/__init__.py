"""Demos of several parties."""
