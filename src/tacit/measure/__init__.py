"""Disclosure risk and utility, as numbers with intervals."""
