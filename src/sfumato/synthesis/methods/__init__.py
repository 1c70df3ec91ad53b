"""Methods that release synthetic rows: one per module, found by its file name."""
