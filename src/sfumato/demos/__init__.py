"""Demos with synthetic data: attacks on releases and query answers, and the methods that prevent them."""
