"""Commands of query auditing."""
