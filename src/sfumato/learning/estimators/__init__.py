"""Private estimators: one module per estimator, found by its file name."""
