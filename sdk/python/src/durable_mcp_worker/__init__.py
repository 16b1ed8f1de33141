"""Write tools for DurableMCP in Python.

A `Worker` registers tools at a server, claims their calls under a lease, runs them and reports what came of them.
The wire protocol is docs/worker-protocol.md; what durable steps promise is in docs/workers.md.
"""

from .address import ServerAddress
from .context import Context, SyncContext
from .errors import CallCancelled, NotWelcome, Retry, ToolError
from .version import VERSION as __version__
from .worker import Worker

__all__ = [
    "CallCancelled",
    "Context",
    "NotWelcome",
    "Retry",
    "ServerAddress",
    "SyncContext",
    "ToolError",
    "Worker",
    "__version__",
]
