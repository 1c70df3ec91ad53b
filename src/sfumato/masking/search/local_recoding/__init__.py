"""Local recoding by clustering."""
