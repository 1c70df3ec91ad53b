"""Where a ledger is kept: SQLite or PostgreSQL, with one schema and its migrations."""
