"""Commands of integral privacy."""
