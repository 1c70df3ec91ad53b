"""Query server: many analysts ask registered data sets, and one ledger holds all budgets.

:class:`~sfumato.server.service.QueryService` is the one place that authorizes, charges, runs and logs a question. The
REST and PostgreSQL endpoints call it and hold no rights of their own.
"""
