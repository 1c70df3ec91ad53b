"""PostgreSQL endpoint: the wire protocol, sign-in by SCRAM, and the system catalogs that clients ask."""
