"""The checks of a release, one class a file."""
