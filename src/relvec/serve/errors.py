"""Every refusal has one form: `{"error": {"type": ..., "message": ..., "field": ...}}`."""

import json
from typing import Any, cast

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException
from starlette.responses import Response

from relvec.errors import RelvecError
from relvec.serve.schemas import ErrorAnswer
from relvec.settings import sentence

LONGEST_MESSAGE = 400
LONGEST_QUOTED = 40
NO_JSON = "The body is not JSON; send a JSON object."
NO_JSON_TYPE = "The body is not read as JSON; send the header content-type: application/json."

TYPES = {
    401: "wrong_key",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_too_slow",
    413: "request_too_large",
    422: "invalid_field",
    429: "too_many_requests",
    500: "server_error",
    503: "unavailable",
}
"""The types of problems, by their status."""


class RefusedError(Exception):
    """A request that is not answered; the type follows from the status."""

    def __init__(self, status: int, message: str, *, field: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.field, self.retry_after = status, field, retry_after

    def response(self) -> Response:
        message = str(self)
        message = message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}..."
        problem = {"type": TYPES[self.status], "message": message, "field": self.field}
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        # json writes letters beyond ASCII as escapes, also such as are no UTF-8
        return Response(json.dumps({"error": problem}), self.status, headers, "application/json")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How an endpoint may refuse, for the OpenAPI document."""
    return {status: {"model": ErrorAnswer, "description": TYPES[status]} for status in statuses}


async def answer_refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return error.response()


async def answer_bad_field(_: Request, error: Exception) -> Response:
    """Of several bad fields, the first."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(step) for step in first["loc"][1:])
    if first["type"] == "json_invalid":
        return RefusedError(422, NO_JSON, field="body").response()
    given = first["input"]
    if isinstance(given, bytes):  # only a body that is said to be JSON is parsed
        return RefusedError(422, NO_JSON_TYPE, field="body").response()
    if isinstance(given, str) and len(given) > LONGEST_QUOTED:
        given = f"{given[:LONGEST_QUOTED]}..."
    said = cast(ErrorDetails, {**first, "loc": (place or "body",), "input": given})
    return RefusedError(422, sentence(said, []), field=place or "body").response()


async def answer_bad_input(_: Request, error: Exception) -> Response:
    """What the library refuses: a pair too long for the model, a word without candidates."""
    assert isinstance(error, RelvecError)
    return RefusedError(422, str(error)).response()


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # a body that Python's JSON gives up at
        return RefusedError(422, NO_JSON, field="body").response()
    message = {
        404: "There is nothing at this path; see /docs.",
        405: f"This path does not take {request.method}; see /docs.",
    }.get(error.status_code, str(error.detail))
    response = RefusedError(error.status_code, message).response()
    response.headers.update(error.headers or {})
    return response


HANDLERS: dict[Any, Any] = {
    RefusedError: answer_refusal,
    RequestValidationError: answer_bad_field,
    RelvecError: answer_bad_input,
    HTTPException: answer_http_error,
}
