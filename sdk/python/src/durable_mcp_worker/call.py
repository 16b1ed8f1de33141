"""One leased call, as the thread that speaks to the server and the one that runs the handler share it.

Knows neither HTTP nor handlers. Each member is written by one side; what both may claim goes through `begin`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

UNSET: Any = object()


class Call:
    """A job of the wire protocol and what becomes of it here."""

    __slots__ = (
        "_gate",
        "arguments",
        "attempt",
        "checkpoint",
        "dropped",
        "effect_key",
        "execution_id",
        "fencing",
        "last_checkpoint",
        "lease_token",
        "max_attempts",
        "meta",
        "namespace",
        "on_drop",
        "outcome",
        "principal",
        "progress",
        "steps",
        "tool",
    )

    def __init__(self, job: dict[str, Any]) -> None:
        self.execution_id: str = job["execution_id"]
        self.lease_token: str = job["lease_token"]
        self.fencing: int = job["fencing_token"]
        self.attempt: int = job["attempt"]
        self.max_attempts: int | None = job.get("max_attempts")
        self.tool: str = job["tool"]
        self.arguments: Any = job.get("arguments")
        self.meta: Any = job.get("meta")
        self.effect_key: str = job["effect_key"]
        self.principal: str | None = job.get("principal")
        self.namespace: str | None = job.get("namespace")
        self.steps: dict[str, Any] = job.get("steps") or {}
        self.last_checkpoint: Any = job.get("checkpoint")
        # What the next heartbeat takes along.
        self.progress: dict[str, Any] | None = None
        self.checkpoint: Any = UNSET
        # Why nobody waits for a result any more: "cancel" or "lost".
        self.dropped: str | None = None
        self.on_drop: Callable[[], None] | None = None
        # What the handler came to: the route and the JSON text that goes there.
        self.outcome: tuple[str, str] | None = None
        self._gate = threading.Lock()

    def begin(self) -> bool:
        """True for the one who asks first: the handler that begins it, or the wire that gives it back unbegun."""
        return self._gate.acquire(blocking=False)

    def drop(self, why: str) -> None:
        """The call was cancelled or its lease is gone: tells the handler, once."""
        if self.dropped is None:
            self.dropped = why
            if self.on_drop is not None:
                self.on_drop()
