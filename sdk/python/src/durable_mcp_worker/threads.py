"""Threads for plain handlers: started when needed, kept, and never waited for at the end of the process, because a
handler that does not end must not keep a drained worker alive. (Those of `concurrent.futures` are joined at exit.)
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Threads:
    """At most `limit` threads; what is submitted beyond that waits its turn."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._started = 0
        self._idle = 0
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, work: Callable[[], None]) -> None:
        """Runs it in a thread. It must not raise."""
        with self._lock:
            needed = self._idle <= self._work.qsize() and self._started < self._limit
            self._started += needed
        self._work.put(work)
        if needed:
            threading.Thread(target=self._run, name="durable-mcp-handler", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            work = self._work.get()
            with self._lock:
                self._idle -= 1
            work()
