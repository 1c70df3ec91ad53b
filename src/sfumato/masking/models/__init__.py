"""Privacy models such as k-anonymity: one per module, found by its file name, each with its independent check."""
