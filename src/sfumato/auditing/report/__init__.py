"""The owner's side of an auditor: replay of a query log, and what the answers given tell together."""
