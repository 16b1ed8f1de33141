"""What a handler sees of its call: ids, progress, durable steps, checkpoints, cancellation.

Two classes with the same names: in an `async def` handler steps are awaited, in a plain one they are not.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from .call import Call
from .errors import CallCancelled
from .results import encode

if TYPE_CHECKING:
    from .wire import Wire

T = TypeVar("T")


class _Facts:
    """What both contexts have."""

    def __init__(self, call: Call, wire: Wire, log: logging.Logger) -> None:
        self._call = call
        self._wire = wire
        self.log = logging.LoggerAdapter(log, {"execution_id": call.execution_id, "tool": call.tool})
        """A logger that carries execution id and tool in `extra`; put no payloads into it."""

    @property
    def execution_id(self) -> str:
        """The id of the execution; also its MCP task id."""
        return self._call.execution_id

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self._call.attempt

    @property
    def max_attempts(self) -> int | None:
        """How many tries there will be at most."""
        return self._call.max_attempts

    @property
    def effect_key(self) -> str:
        """The same for every attempt and retry: the idempotency key for what the tool writes elsewhere."""
        return self._call.effect_key

    @property
    def fencing(self) -> int:
        """Grows with every lease: lets what is written to tell a replaced writer from its successor."""
        return self._call.fencing

    @property
    def tool(self) -> str:
        return self._call.tool

    @property
    def namespace(self) -> str | None:
        return self._call.namespace

    @property
    def principal(self) -> str | None:
        """Who called."""
        return self._call.principal

    @property
    def meta(self) -> Any:
        """The `_meta` of the call, or `None`."""
        return self._call.meta

    @property
    def cancelled(self) -> bool:
        """True when nobody wants a result any more: the call was cancelled, or the lease is another worker's."""
        return self._call.dropped is not None

    @property
    def last_checkpoint(self) -> Any:
        """What `checkpoint` stored last, in this attempt or an earlier one; `None` when nothing."""
        return self._call.last_checkpoint

    def checkpoint(self, value: Any) -> None:
        """Stores how far the work is, for the next attempt. It goes with the next heartbeat, which is sent at once when
        the last is a moment ago; a crash before that loses it. What must not be lost is a step.
        """
        self._raise_if_cancelled()
        encode(value)
        self._call.last_checkpoint = value
        self._call.checkpoint = value
        self._wire.nudge()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tells the caller how far the work is, as MCP progress. The newest one wins when many come at once."""
        self._raise_if_cancelled()
        news: dict[str, Any] = {"progress": done}
        if total is not None:
            news["total"] = total
        if message is not None:
            news["message"] = message
        encode(news)
        self._call.progress = news
        self._wire.nudge()

    def _raise_if_cancelled(self) -> None:
        """In a plain handler the calls of the context are where it is stopped; a coroutine is stopped by asyncio."""


class Context(_Facts):
    """The context of an `async def` handler. Cancellation arrives as `asyncio.CancelledError`."""

    def __init__(self, call: Call, wire: Wire, log: logging.Logger) -> None:
        super().__init__(call, wire, log)
        self._running: dict[str, asyncio.Future[Any]] = {}

    @overload
    async def step(self, name: str, run: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    async def step(self, name: str, run: Callable[[], T]) -> T: ...
    async def step(self, name: str, run: Callable[[], Any]) -> Any:
        """Runs `run` once and stores what it returns under `name`; a later attempt gets that instead of running it.

        What comes back is what JSON makes of the value, the first time too. A step that dies before its result is
        stored runs again: pass `ctx.effect_key` on where that would do harm.
        """
        call = self._call
        if name in call.steps:
            return call.steps[name]
        if name in self._running:
            return await asyncio.shield(self._running[name])
        future = self._running[name] = asyncio.get_running_loop().create_future()
        try:
            value = run()
            if inspect.isawaitable(value):
                value = await value
            text = encode(value)
            stored = await asyncio.wrap_future(self._wire.store_step(call, name, text))
        except BaseException as error:
            del self._running[name]
            if isinstance(error, Exception):
                future.set_exception(error)
                # Perhaps nobody waits for it beside us, which is no mistake.
                future.exception()
            else:
                future.cancel()
            raise
        call.steps[name] = stored
        future.set_result(stored)
        return stored


class SyncContext(_Facts):
    """The context of a plain `def` handler, which runs in a thread. After a cancel its methods raise `CallCancelled`."""

    def step(self, name: str, run: Callable[[], T]) -> T:
        """As `Context.step`, for plain functions."""
        self._raise_if_cancelled()
        call = self._call
        if name not in call.steps:
            call.steps[name] = self._wire.store_step(call, name, encode(run())).result()
        return call.steps[name]

    def raise_if_cancelled(self) -> None:
        """Raises `CallCancelled` when nobody wants a result any more. For loops that call nothing else here."""
        self._raise_if_cancelled()

    def _raise_if_cancelled(self) -> None:
        if self._call.dropped is not None:
            raise CallCancelled(self._call.dropped)
