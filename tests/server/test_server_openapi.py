"""Generated requests on the OpenAPI document: the server never fails, and answers as documented."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `server` is not installed")
pytest.importorskip("schemathesis", reason="schemathesis is not installed")
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from test_server_rest import Server


@pytest.mark.slow
def test_generated_requests(tmp_path: Path) -> None:
    server = Server(tmp_path, request_limit="100000/minute", sign_in_limit="100000/minute", failures=1_000_000)
    left_out = {"read_events", "set_password", "sign_in"}  # a stream; argon2, which is slow by design
    with server.client:
        document = schemathesis.openapi.from_asgi(
            "/api/v1/openapi.json", server.client.app, headers={"Host": "127.0.0.1:8642"}
        )
        seen: set[str] = set()
        for result in document.get_all_operations():
            operation = result.ok()
            name = operation.definition.raw["operationId"]
            if name in left_out:
                continue
            seen.add(name)

            @given(case=operation.as_strategy())
            @settings(
                max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate], database=None,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            def check(case: schemathesis.Case) -> None:
                for who in ("ada", "owner", "root"):
                    response = server(
                        case.method, case.formatted_path, who, params=case.query or None,
                        json=case.body if isinstance(case.body, dict | list | str | int | float | None) else None,
                    )  # fmt: skip
                    assert response.status_code < 500, (case.method, case.path, case.body, response.text)
                    documented = {str(status) for status in case.operation.definition.raw["responses"]}
                    assert str(response.status_code) in documented | {"405"}, (case.path, response.status_code)

            check()
    assert len(seen) > 35
    server.service.state.ledger.verify()
