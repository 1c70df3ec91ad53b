"""Commands of several parties."""
