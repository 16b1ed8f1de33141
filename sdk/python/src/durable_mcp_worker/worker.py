"""The worker as its author sees it: register handlers, run. Runs handlers; the conversation is `wire`'s."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar, overload

from .address import ServerAddress
from .call import Call
from .context import Context, SyncContext
from .errors import CallCancelled, Retry, ToolError
from .results import error_result, failure, tool_result
from .schema import InvalidArguments, Signature, signature
from .threads import Threads
from .version import VERSION
from .wire import Wire

log = logging.getLogger("durable_mcp_worker")

Delivery = Literal["at_least_once", "at_most_once"]
# The route, and the JSON text that goes there; `None`: nothing need be reported.
_Outcome = tuple[str, str] | None
F = TypeVar("F", bound=Callable[..., Any])

# How long the process may take to end after the drain is over.
END_TIMEOUT_S = 2.0


class _Tool(NamedTuple):
    function: Callable[..., Any]
    is_async: bool
    call: Signature
    definition: dict[str, Any]


class Worker:
    """Offers tools to a DurableMCP server and runs their calls.

    `url`: the server; else `DURABLE_MCP_URL`, else http://127.0.0.1:7400. `token`: a credential with the scope `work`;
    else `DURABLE_MCP_TOKEN`, else the local token of a server of this user. `slots`: calls at once. `grace`: seconds
    that running calls may take to end after SIGTERM or SIGINT.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        name: str | None = None,
        *,
        slots: int = 16,
        grace: float = 20.0,
    ) -> None:
        if slots < 1:
            raise ValueError("slots must be at least 1")
        self.address = ServerAddress(url, token)
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.slots = slots
        self.grace = grace
        self._tools: dict[str, _Tool] = {}
        self._threads = Threads(slots)
        self._wire: Wire | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[_Outcome]] = set()
        self._is_stopped = False

    @overload
    def tool(self, name: F, /) -> F: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        delivery: Delivery | None = None,
        timeout: float | None = None,
        max_attempts: int | None = None,
    ) -> Callable[[F], F]: ...
    def tool(
        self,
        name: Any = None,
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: dict[str, Any] | None = None,
        output_schema: dict[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        delivery: Delivery | None = None,
        timeout: float | None = None,
        max_attempts: int | None = None,
    ) -> Any:
        """Registers a handler, as a decorator. Without a name the function's; without a description its docstring.

        `timeout` is the longest attempt, in seconds. Without `delivery` a lost call is not run again, unless
        `annotations` say that the tool is read-only or idempotent.
        """

        def register(function: F, name: str | None = name) -> F:
            tool_name = name or function.__name__
            if tool_name in self._tools:
                raise ValueError(f"there is a tool {tool_name} already")
            is_async = inspect.iscoroutinefunction(function)
            call = signature(function, (Context if is_async else SyncContext,), input_schema)
            members = {
                "name": tool_name,
                "title": title,
                "description": description or inspect.getdoc(function),
                "inputSchema": call.schema,
                "outputSchema": output_schema,
                "annotations": annotations,
                "delivery": delivery,
                "timeout_ms": None if timeout is None else max(1, round(timeout * 1000)),
                "max_attempts": max_attempts,
            }
            definition = {key: value for key, value in members.items() if value is not None}
            self._tools[tool_name] = _Tool(function, is_async, call, definition)
            return function

        return register(name, None) if callable(name) else register

    def run(self) -> None:
        """Serves until SIGTERM or SIGINT, then drains. A second signal ends the process at once.

        Call it in the main thread. Raises `NotWelcome` when the server refuses this worker.
        """
        if not logging.getLogger().handlers and not log.handlers:
            logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
            logging.getLogger("httpx").setLevel(logging.WARNING)

        signals = 0

        def on_signal(number: int, _frame: Any) -> None:
            nonlocal signals
            signals += 1
            if signals > 1:
                os._exit(128 + number)
            self.stop()

        # Not the event loop's way: it would wait until a handler that blocks the loop has ended.
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
        loop = asyncio.new_event_loop()
        over = threading.Event()
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(self._serve(lambda: _end_process_unless(over)))
            # Handlers that were given up have been cancelled; they may take a moment to notice.
            if self._tasks:
                loop.run_until_complete(asyncio.wait(set(self._tasks), timeout=END_TIMEOUT_S / 2))
        finally:
            over.set()
            for number, handler in before.items():
                signal.signal(number, handler)
            asyncio.set_event_loop(None)
            loop.close()

    async def serve(self) -> None:
        """As `run`, in an event loop of yours and without signals: `stop` ends it, and so does cancelling."""
        await self._serve(lambda: None)

    def stop(self) -> None:
        """Begins to drain: nothing new is claimed, what runs may end within the grace time. From any thread."""
        self._is_stopped = True
        if self._wire is not None:
            self._wire.drain()

    async def _serve(self, after_end: Callable[[], None]) -> None:
        if self._wire is not None:
            raise RuntimeError("a worker serves once")
        if not self._tools:
            raise ValueError("a worker without tools has nothing to do")
        loop = self._loop = asyncio.get_running_loop()
        end: asyncio.Future[None] = loop.create_future()

        def ended(error: BaseException | None) -> None:
            def tell() -> None:
                if not end.done():
                    end.set_exception(error) if error else end.set_result(None)

            try:
                loop.call_soon_threadsafe(tell)
            except RuntimeError:
                return
            after_end()

        registration = {
            "worker_id": str(uuid.uuid4()),
            "name": self.name,
            "slots": self.slots,
            "sdk": f"python/{VERSION}",
            "tools": [tool.definition for tool in self._tools.values()],
        }
        self._wire = Wire(self.address, registration, self.grace, self._deliver, ended)
        self._wire.start()
        if self._is_stopped:
            self._wire.drain()
        try:
            await asyncio.shield(end)
        except asyncio.CancelledError:
            self._wire.drain()
            await end
            raise
        self._wire.join(END_TIMEOUT_S)

    # On the wire's thread.

    def _deliver(self, calls: list[Call]) -> None:
        assert self._loop is not None
        asynchronous = []
        for call in calls:
            tool = self._tools.get(call.tool)
            if tool is not None and tool.is_async:
                asynchronous.append((tool, call))
            else:
                self._threads.submit(lambda tool=tool, call=call: self._run_in_thread(tool, call))
        if asynchronous:
            self._loop.call_soon_threadsafe(self._start, asynchronous)

    # On the loop's thread.

    def _start(self, calls: list[tuple[_Tool, Call]]) -> None:
        assert self._loop is not None
        for tool, call in calls:
            if not call.begin():
                continue
            if call.dropped:
                self._finish(call, None)
                continue
            task = self._loop.create_task(self._run_as_task(tool, call))
            self._tasks.add(task)
            task.add_done_callback(lambda task, call=call: self._task_ended(task, call))
            call.on_drop = self._canceller(task)
            if call.dropped:
                # It came between the two lines above.
                task.cancel()

    def _canceller(self, task: asyncio.Task[_Outcome]) -> Callable[[], None]:
        loop = task.get_loop()

        def cancel() -> None:
            try:
                loop.call_soon_threadsafe(task.cancel)
            except RuntimeError:
                log.debug("the event loop has ended")

        return cancel

    async def _run_as_task(self, tool: _Tool, call: Call) -> _Outcome:
        try:
            context = Context(call, self._wire_in_use(), log) if tool.call.context_name else None
            return ("complete", tool_result(await tool.function(**self._arguments(tool, call, context))))
        except asyncio.CancelledError as error:
            # When nobody asked for it, it is the handler's own and a failure like another.
            return None if call.dropped else self._outcome_of(call, error)
        except Exception as error:
            return self._outcome_of(call, error)

    def _task_ended(self, task: asyncio.Task[_Outcome], call: Call) -> None:
        self._tasks.discard(task)
        # A task that is cancelled before its first step runs nothing of the above.
        self._finish(call, None if task.cancelled() else task.result())

    # On a thread of the handler's own.

    def _run_in_thread(self, tool: _Tool | None, call: Call) -> None:
        if not call.begin():
            return
        outcome: _Outcome = None
        try:
            if tool is None:
                outcome = ("fail", failure("tool_unknown", f"this worker has no tool {call.tool}", False))
            elif not call.dropped:
                context = SyncContext(call, self._wire_in_use(), log) if tool.call.context_name else None
                outcome = ("complete", tool_result(tool.function(**self._arguments(tool, call, context))))
        except BaseException as error:
            outcome = self._outcome_of(call, error)
        finally:
            self._finish(call, outcome)

    def _finish(self, call: Call, outcome: _Outcome) -> None:
        call.outcome = outcome
        self._wire_in_use().finish(call)

    def _wire_in_use(self) -> Wire:
        assert self._wire is not None, "handlers run only while the worker serves"
        return self._wire

    @staticmethod
    def _arguments(tool: _Tool, call: Call, context: Context | SyncContext | None) -> dict[str, Any]:
        arguments = tool.call.bind(call.arguments)
        if tool.call.context_name is not None:
            return {**arguments, tool.call.context_name: context}
        return arguments

    @staticmethod
    def _outcome_of(call: Call, error: BaseException) -> _Outcome:
        if isinstance(error, (ToolError, InvalidArguments)):
            return ("complete", error_result(str(error)))
        if isinstance(error, CallCancelled) and call.dropped:
            return None
        code = type(error).__name__
        if isinstance(error, Retry):
            log.info("execution %s: attempt %d asks to be retried", call.execution_id, call.attempt)
            more: dict[str, Any] = {}
            if error.after is not None:
                more["retry_after_ms"] = max(0, round(error.after * 1000))
            if error.not_started:
                more["not_started"] = True
            return ("fail", failure(code, str(error), True, more))
        # The text and the trace may hold payloads, so that they are for debugging only.
        log.error("execution %s: tool %s failed with %s", call.execution_id, call.tool, code)
        log.debug("execution %s", call.execution_id, exc_info=error)
        return ("fail", failure(code, str(error), False))


def _end_process_unless(over: threading.Event) -> None:
    """A handler that still blocks the event loop after the drain does not keep the process."""
    if not over.wait(END_TIMEOUT_S):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
