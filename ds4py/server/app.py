"""The application: the routes, and the error answers."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp

import ds4py
from ds4py.json_types import Json
from ds4py.server.anthropic.message_writer import MessageWriter
from ds4py.server.anthropic.messages import MessagesRequest, PromptRequest
from ds4py.server.errors import ApiError, api_error, body_for
from ds4py.server.fields import check_model
from ds4py.server.middleware import RequestMiddleware
from ds4py.server.openai.chat import ChatRequest
from ds4py.server.openai.chat_writer import ChatWriter
from ds4py.server.openai.completion_writer import CompletionWriter
from ds4py.server.openai.completions import CompletionRequest
from ds4py.server.openai.response_item_writer import ResponseItemWriter
from ds4py.server.openai.responses import ResponseRequest
from ds4py.server.response_writer import JsonResponse
from ds4py.server.service import Service
from ds4py.server.validation import validation_error

REFUSALS: dict[int | str, Json] = {
    "4XX": {"description": "The request is refused; the message names the field"},
    503: {"description": "The model is loading, or the server stops"},
}
ANSWERS: dict[int | str, Json] = {
    200: {"description": "The answer; a stream of events with `stream: true`", "content": {"text/event-stream": {}}},
    **REFUSALS,
}


def build(service: Service) -> tuple[FastAPI, ASGIApp]:
    """Returns the application, and the application inside its middleware."""
    app = FastAPI(title="ds4py", version=ds4py.__version__, docs_url=None, redoc_url=None)
    for kind in (HTTPException, RequestValidationError, ds4py.Error, MemoryError, Exception):
        app.add_exception_handler(kind, on_error)
    add_generation(app, service)
    add_counting(app, service)
    add_models(app, service)
    add_state(app, service)
    guarded: ASGIApp = RequestMiddleware(app, service.options, service.metrics)
    if origins := service.options.cors_origins:
        guarded = CORSMiddleware(guarded, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])
    return app, guarded


async def on_error(request: Request, error: Exception) -> Response:
    """Answers any exception in the form of the API that the path belongs to."""
    if isinstance(error, RequestValidationError):
        found = validation_error(error.errors(), error.body)
    elif isinstance(error, HTTPException) and error.status_code in (404, 405) and not isinstance(error, ApiError):
        found = unknown(request, error)
    else:
        found = api_error(error)
    return JsonResponse(body_for(request.url.path, found), found.status_code, found.headers)


def unknown(request: Request, error: HTTPException) -> ApiError:
    """Returns the error for an unknown path or method, such as a path without /v1."""
    message = f"there is no {request.method} {request.url.path} here; GET /openapi.json lists what there is"
    return ApiError(error.status_code, message, headers=error.headers)


def add_generation(app: FastAPI, service: Service) -> None:
    """Adds the routes that generate."""

    @app.post("/v1/chat/completions", responses=ANSWERS)
    async def chat_completions(request: Request, body: ChatRequest) -> Response:
        """Answers a conversation (OpenAI)."""
        model = model_of(service, body.model)
        answer = ChatWriter(
            model, service.engine.tokenizer, usage=with_usage(body.stream_options), logprobs=bool(body.logprobs)
        )
        return await service.answer(request, body.generation_request(), answer, stream=bool(body.stream))

    @app.post("/v1/completions", responses=ANSWERS)
    async def completions(request: Request, body: CompletionRequest) -> Response:
        """Continues a raw prompt (OpenAI)."""
        model = model_of(service, body.model)
        answer = CompletionWriter(model, service.engine.tokenizer, usage=with_usage(body.stream_options))
        return await service.answer(request, body.generation_request(), answer, stream=bool(body.stream))

    @app.post("/v1/responses", responses=ANSWERS)
    async def responses(request: Request, body: ResponseRequest) -> Response:
        """Answers a conversation (OpenAI's responses; nothing is stored)."""
        model = model_of(service, body.model)
        answer = ResponseItemWriter(model, service.engine.tokenizer, body)
        return await service.answer(request, body.generation_request(), answer, stream=bool(body.stream))

    @app.post("/v1/messages", responses=ANSWERS)
    async def messages(request: Request, body: MessagesRequest) -> Response:
        """Answers a conversation (Anthropic)."""
        answer = MessageWriter(model_of(service, body.model))
        return await service.answer(request, body.generation_request(), answer, stream=bool(body.stream))


def add_counting(app: FastAPI, service: Service) -> None:
    """Adds the route that counts a prompt's tokens."""

    @app.post("/v1/messages/count_tokens", responses=REFUSALS)
    async def count_tokens(body: PromptRequest) -> Json:
        """Counts the tokens of a conversation's prompt, those in the cache included (Anthropic)."""
        model_of(service, body.model)
        ids = await asyncio.to_thread(body.generation_request().prompt_ids, service.engine.tokenizer)
        return {"input_tokens": len(ids)}


def add_models(app: FastAPI, service: Service) -> None:
    """Adds the routes of the model list, which OpenAI's and Anthropic's clients can read."""

    @app.get("/v1/models")
    async def models() -> Json:
        """The model, by each name that requests may give it."""
        data = [described(service, name) for name in service.names]
        return {
            "object": "list",
            "data": data,
            "has_more": False,
            "first_id": data[0]["id"],
            "last_id": data[-1]["id"],
        }

    @app.get("/v1/models/{name:path}", responses={"4XX": {"description": "There is no such model"}})
    async def model(name: str) -> Json:
        """The model, if that is its name."""
        return described(service, model_of(service, name))


def add_state(app: FastAPI, service: Service) -> None:
    """Adds the routes of health and metrics."""

    @app.get("/health")
    async def health() -> Response:
        """200 once requests can be answered, 503 before and while stopping."""
        state: Json = {"status": service.state}
        if service.state == "loading":
            state["progress"] = round(service.progress, 3)
        return JsonResponse(state, 200 if service.state == "ok" else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        """Counts, for Prometheus."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def model_of(service: Service, given: str | None) -> str:
    """Returns the model's name in the request, or the first served one. Raises ApiError (404) for an unknown name."""
    check_model(given, service.names)
    return given or service.names[0]


def described(service: Service, name: str) -> Json:
    """Returns one entry of the model list."""
    created = service.started_at
    return {
        "id": name,
        "object": "model",
        "created": int(created.timestamp()),
        "owned_by": "ds4py",
        "type": "model",
        "display_name": service.engine.name,
        "created_at": created.isoformat(),
        "context_length": service.engine.pool.context,
    }


def with_usage(options: Any) -> bool:
    """Whether a stream is to end with its usage."""
    return bool(options and options.include_usage)
