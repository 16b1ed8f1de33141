"""Drives the official Python client in the modes legacy, auto and pinned to a revision.

Speaks the same line protocol as the Node drivers (driver.mjs). Adds nothing to the SDK's behaviour.
"""

import asyncio
import json
import os
import sys
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import ElicitResult, Implementation, PromptReference, ResourceTemplateReference


def say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def options() -> dict[str, Any]:
    given: dict[str, Any] = {"mode": "legacy", "headers": {}, "name": "driver", "url": None, "command": None, "args": []}
    own = sys.argv[1:]
    while own:
        flag = own.pop(0)
        if flag == "--stdio":
            # Everything after --stdio belongs to the server's command line.
            given["command"], given["args"] = own[0], own[1:]
            break
        value = own.pop(0)
        if flag == "--header":
            name, _, text = value.partition(":")
            given["headers"][name.strip()] = text.strip()
        elif flag in ("--url", "--mode", "--name"):
            given[flag[2:]] = value
        else:
            sys.exit(f"unknown flag: {flag}")
    return given


def failure(error: BaseException) -> dict[str, Any]:
    if isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        return failure(error.exceptions[0])
    if isinstance(error, MCPError):
        return {"code": error.code, "message": error.message, "data": error.data}
    return {"code": type(error).__name__, "message": str(error), "data": None}


def plain(result: Any) -> Any:
    return result.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def list_tools(client: Client, op: dict[str, Any]) -> Any:
    tools: list[Any] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += plain(page)["tools"]
        cursor = page.next_cursor
        if cursor is None:
            return {"tools": tools}


async def call_tool(client: Client, op: dict[str, Any]) -> Any:
    async def progress(progress: float, total: float | None, message: str | None) -> None:
        say({"id": op["id"], "progress": {"progress": progress, "total": total, "message": message}})

    timeout_ms = op.get("timeout_ms")
    result = await client.call_tool(
        op["name"],
        op.get("arguments") or {},
        timeout_ms / 1000 if timeout_ms else None,
        progress if op.get("progress") else None,
        meta=op.get("meta"),
    )
    return plain(result)


async def request(client: Client, op: dict[str, Any]) -> Any:
    params = op.get("params") or {}
    match op["method"]:
        case "capabilities":
            return plain(client.server_capabilities)
        case "resources/list":
            return plain(await client.list_resources(cursor=params.get("cursor")))
        case "resources/templates/list":
            return plain(await client.list_resource_templates(cursor=params.get("cursor")))
        case "resources/read":
            return plain(await client.read_resource(params["uri"]))
        case "resources/subscribe":
            return plain(await client.subscribe_resource(params["uri"]))
        case "resources/unsubscribe":
            return plain(await client.unsubscribe_resource(params["uri"]))
        case "prompts/list":
            return plain(await client.list_prompts(cursor=params.get("cursor")))
        case "prompts/get":
            return plain(await client.get_prompt(params["name"], params.get("arguments")))
        case "completion/complete":
            kind = PromptReference if params["ref"]["type"] == "ref/prompt" else ResourceTemplateReference
            context = (params.get("context") or {}).get("arguments")
            return plain(await client.complete(kind(**params["ref"]), params["argument"], context))
        case "logging/setLevel":
            return plain(await client.set_logging_level(params["level"]))
        case other:
            raise ValueError(f"no such request: {other}")


async def answer(client: Client, op: dict[str, Any]) -> None:
    try:
        result = await {"list": list_tools, "call": call_tool, "request": request}[op["op"]](client, op)
    except asyncio.CancelledError:
        say({"id": op["id"], "ok": False, "error": {"code": "cancelled", "message": "cancelled", "data": None}})
        raise
    except Exception as error:
        say({"id": op["id"], "ok": False, "error": failure(error)})
    else:
        say({"id": op["id"], "ok": True, "result": result})


def server_of(given: dict[str, Any]) -> Any:
    if given["command"]:
        # The whole environment, so that the server sees what a test set.
        return StdioServerParameters(command=given["command"], args=given["args"], env=dict(os.environ))
    if os.environ.get("CLIENT_TRANSPORT") == "sse":
        return sse_client(given["url"], headers=given["headers"])
    if given["headers"]:
        # The time-outs that the SDK gives its own HTTP client.
        http_client = httpx2.AsyncClient(headers=given["headers"], timeout=httpx2.Timeout(30, read=300))
        return streamable_http_client(given["url"], http_client=http_client)
    return given["url"]


async def notified(message: Any) -> None:
    method = getattr(message, "method", None)
    if isinstance(method, str) and method.startswith("notifications/") and method != "notifications/progress":
        say({"notification": plain(message)})


# What the user answers to every form, where a test sets it.
ANSWER = os.environ.get("CLIENT_ANSWERS")


async def elicited(context: Any, params: Any) -> ElicitResult:
    say({"notification": {"method": "test/asked", "params": plain(params)}})
    return ElicitResult(action="accept", content={"answer": ANSWER or ""})


async def main() -> None:
    given = options()
    reader = asyncio.StreamReader(limit=64 * 1024 * 1024)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    client_info = Implementation(name=given["name"], version="1")
    running: dict[str, asyncio.Task[None]] = {}
    client = Client(
        server_of(given),
        mode=given["mode"],
        client_info=client_info,
        message_handler=notified,
        elicitation_callback=None if ANSWER is None else elicited,
    )
    async with client:
        say({"ready": True, "protocol": client.protocol_version})
        while line := await reader.readline():
            op = json.loads(line)
            if op["op"] == "close":
                break
            if op["op"] == "cancel":
                if op["id"] in running:
                    running[op["id"]].cancel()
                continue
            task = asyncio.create_task(answer(client, op))
            running[op["id"]] = task
            task.add_done_callback(lambda _, id=op["id"]: running.pop(id, None))


try:
    asyncio.run(main())
except BaseException as error:
    if isinstance(error, SystemExit):
        raise
    say({"ready": False, "error": failure(error)})
    sys.exit(1)
