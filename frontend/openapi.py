"""Write the OpenAPI documents of the app and the server, from which the types of the front end are generated."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sfumato.app.service import openapi as app_document
from sfumato.server.rest.application import openapi as server_document

here = Path(__file__).parent
with tempfile.TemporaryDirectory() as folder:
    (here / "openapi.json").write_text(app_document(Path(folder)) + "\n", encoding="utf-8")
    (here / "server-openapi.json").write_text(server_document(Path(folder)) + "\n", encoding="utf-8")
