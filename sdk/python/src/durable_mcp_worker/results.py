"""From what a handler returns to the JSON text of an MCP tool result. The same rules hold in every language
(`sdk/vectors/results.json`).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from typing import Any

# The server's limit, and its characters.
ERROR_CODE_CHARS = 64


def _plain(value: Any) -> Any:
    """What `json` does not know by itself."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


# One encoder each, because `json.dumps` makes a new one for every call with options.
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_plain).encode
_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False, default=_plain).encode


def encode(value: Any) -> str:
    """The JSON text of a value. Raises `TypeError` or `ValueError` for what is none (NaN, a file, a cycle)."""
    text = _compact(value)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8, but an escape.
        return _ascii(value)
    return text


def tool_result(value: Any) -> str:
    """A text is text; an object is its JSON and `structuredContent`; an MCP result stays as it is; nothing is empty."""
    if isinstance(value, str):
        return f'{{"content":[{{"type":"text","text":{encode(value)}}}]}}'
    if value is None:
        return '{"content":[]}'
    text = encode(value)
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return text
    content = f'{{"content":[{{"type":"text","text":{encode(text)}}}]'
    return f'{content},"structuredContent":{text}}}' if text.startswith("{") else f"{content}}}"


def error_result(message: str) -> str:
    """The result of a tool that says no."""
    return f'{{"content":[{{"type":"text","text":{encode(message)}}}],"isError":true}}'


def failure(code: str, message: str, retryable: bool, more: dict[str, Any] | None = None) -> str:
    """The members of a `fail` beside worker and lease, as JSON without the braces."""
    code = re.sub(r"[^A-Za-z0-9_.-]", "_", code)[:ERROR_CODE_CHARS] or "error"
    members = {"error": {"code": code, "message": message}, "retryable": retryable, **(more or {})}
    return encode(members)[1:-1]


