"""What a handler raises to say how a call ended, and what the worker raises itself. Decides nothing."""

from __future__ import annotations


class ToolError(Exception):
    """The tool says no: the caller gets this text as a result with `isError`. It is not retried."""


class Retry(Exception):
    """No result this time: run the call again, if its delivery permits another attempt.

    `after` is the earliest time of the next attempt, in seconds from now; without it the server's back-off decides.
    `not_started=True` says that the effect provably was not begun: only then does an `at_most_once` call run again.
    """

    def __init__(self, message: str, *, after: float | None = None, not_started: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.not_started = not_started


class CallCancelled(Exception):
    """Raised in a synchronous handler by its context when the call was cancelled or its lease was lost."""


class NotWelcome(Exception):
    """The server refuses this worker for good: a wrong credential, a tool name that is another's, a bad definition."""
