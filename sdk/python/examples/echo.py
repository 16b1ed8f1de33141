"""The smallest worker: one tool that answers what it is told.

    durable-mcp serve &
    python examples/echo.py
"""

from durable_mcp_worker import Worker

worker = Worker(name="echo", slots=64)


@worker.tool(annotations={"readOnlyHint": True})
async def echo(text: str) -> str:
    """Answers with the text it is given."""
    return text


if __name__ == "__main__":
    worker.run()
