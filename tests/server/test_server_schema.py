"""The OpenAPI description of the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fake_engine import FakeEngine
from fastapi.openapi.models import OpenAPI
from serving import live

pytestmark = pytest.mark.fast

GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses")


@pytest.fixture(scope="module")
def schema() -> Any:
    with live(FakeEngine()) as server:
        return server.get("/openapi.json").json()


def inner(value: Any) -> Iterator[Any]:
    """All objects in a value."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from inner(each)


def test_it_is_one(schema: Any) -> None:
    OpenAPI.model_validate(schema)
    assert schema["openapi"].startswith("3.1") and schema["info"]["title"] == "ds4py"
    for each in inner(schema):
        if isinstance(ref := each.get("$ref"), str):
            assert ref.rpartition("/")[2] in schema["components"]["schemas"]


def test_it_has_the_endpoints(schema: Any) -> None:
    assert {path: sorted(methods) for path, methods in schema["paths"].items()} == {
        **{path: ["post"] for path in (*GENERATING, "/v1/messages/count_tokens")},
        **{path: ["get"] for path in ("/v1/models", "/v1/models/{name}", "/health", "/metrics")},
    }
    assert all(method.get("description") for path in schema["paths"].values() for method in path.values())


@pytest.mark.parametrize("path", GENERATING)
def test_requests_are_described_and_closed(schema: Any, path: str) -> None:
    body = schema["paths"][path]["post"]["requestBody"]
    assert body["required"]
    assert {"200", "4XX", "503"} == schema["paths"][path]["post"]["responses"].keys()
    model = body["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert schema["components"]["schemas"][model]["properties"]["stream"]
    for name, each in schema["components"]["schemas"].items():
        if each.get("type") == "object" and "properties" in each:
            assert each["additionalProperties"] is False, name
            assert each["description"], name
