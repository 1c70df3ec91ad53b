"""The demos of `sfumato demo`: one per module, found by its file name."""
