"""Disclosure risk and utility, as numbers with intervals."""

from tacit.verbal import make_callable


make_callable(__name__)
