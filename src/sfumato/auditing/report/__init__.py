"""The owner's report of an auditor: what the answers given tell together."""
