"""The worker that `sdk/vectors` drive, in Python. `sdk/vectors/README.md` says what each tool does."""

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

from durable_mcp_worker import Context, Retry, SyncContext, ToolError, Worker

NAME = os.environ["CONFORMANCE_NAME"]
LEDGER = os.environ["CONFORMANCE_LEDGER"]
SLOTS = int(os.environ.get("CONFORMANCE_SLOTS", "8"))
GRACE_S = int(os.environ.get("CONFORMANCE_GRACE_MS", "5000")) / 1000

worker = Worker(name=NAME, slots=SLOTS, grace=GRACE_S)
RETURNS: dict[str, Any] = {
    "text": "plain",
    "object": {"sum": 3, "of": [1, 2]},
    "nothing": None,
    "list": [1, 2],
    "number": 7,
    "result": {"content": [{"type": "text", "text": "as it is"}], "structuredContent": {"n": 1}},
    "unicode": "naïve ☃ 𝄞 \"quoted\"\n",
}


def note(text: str) -> None:
    with open(LEDGER, "a", encoding="utf-8") as ledger:
        ledger.write(f"{NAME} {text}\n")


@worker.tool(annotations={"readOnlyHint": True})
async def echo(text: str) -> str:
    """Answers with the text it is given."""
    return text


@worker.tool(delivery="at_least_once")
def returns(kind: str) -> Any:
    return RETURNS[kind]


async def fails(
    ctx: Context, how: Literal["tool_error", "error", "retry", "retry_not_started"], until_attempt: int = 2
) -> dict:
    if how == "tool_error":
        raise ToolError("the tool says no")
    if how == "error":
        raise LookupError("nothing there")
    if ctx.attempt < until_attempt:
        raise Retry("not yet", after=0.01, not_started=how == "retry_not_started")
    return {"attempt": ctx.attempt}


worker.tool("fails", delivery="at_least_once", max_attempts=3)(fails)
worker.tool("fails_once", delivery="at_most_once", max_attempts=3)(fails)


@worker.tool(delivery="at_least_once", max_attempts=5)
async def steps(ctx: Context, pause_in: str = "") -> dict:
    async def step(name: str) -> dict:
        note(f"{name} attempt {ctx.attempt}")
        if name == pause_in and ctx.attempt == 1:
            await asyncio.sleep(60)
        return {"by": NAME}

    done = {name: await ctx.step(name, lambda name=name: step(name)) for name in ("one", "two", "three")}
    return {**done, "attempt": ctx.attempt, "fencing": ctx.fencing, "key": ctx.effect_key, "id": ctx.execution_id}


@worker.tool(delivery="at_least_once")
async def block(ctx: Context, ms: int) -> dict:
    note("block begun")
    time.sleep(ms / 1000)
    return {"attempt": ctx.attempt}


@worker.tool(delivery="at_least_once", max_attempts=5)
async def hold(ctx: Context, gate: str) -> dict:
    note(f"hold begun {ctx.attempt}")
    try:
        while not Path(gate).exists():
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        note("hold cancelled" if ctx.cancelled else "hold was never cancelled")
        raise
    note("hold ended")
    return {"by": NAME, "attempt": ctx.attempt}


@worker.tool(delivery="at_least_once")
async def progress(ctx: Context, count: int) -> str:
    for at in range(1, count + 1):
        ctx.progress(at, count, f"{at} of {count}")
        await asyncio.sleep(0.1)
    return "done"


@worker.tool(delivery="at_least_once")
def checkpoint(ctx: SyncContext) -> dict:
    if ctx.attempt == 1:
        ctx.checkpoint({"row": 300})
        raise Retry("from here", after=0)
    return {"last": ctx.last_checkpoint, "attempt": ctx.attempt}


@worker.tool(annotations={"readOnlyHint": True})
async def typed(
    customer: Annotated[str, "Who pays."],
    amount: int,
    rate: float = 1.0,
    urgent: bool = False,
    tags: Optional[list[str]] = None,
    kind: Literal["card", "cash"] = "card",
) -> dict:
    return {"customer": customer, "amount": amount, "rate": rate, "urgent": urgent, "tags": tags, "kind": kind}


if __name__ == "__main__":
    worker.run()
