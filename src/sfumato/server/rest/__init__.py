"""REST interface of the query service, described by OpenAPI."""
