"""A booking in three steps. Kill the worker in the middle and start it again: what is booked is not booked twice.

    durable-mcp serve &
    python examples/steps.py
"""

import asyncio
from typing import Literal

from durable_mcp_worker import Context, Retry, ToolError, Worker

worker = Worker(name="travel")


@worker.tool(delivery="at_least_once", timeout=300, max_attempts=5)
async def book_trip(ctx: Context, city: str, nights: int = 1, room: Literal["single", "double"] = "single") -> dict:
    """Books a flight, then a hotel, then writes the confirmation."""
    if nights < 1:
        raise ToolError("a trip has at least one night")
    flight = await ctx.step("flight", lambda: reserve("flight", city, ctx.effect_key))
    ctx.progress(1, 3, "the flight is booked")
    hotel = await ctx.step("hotel", lambda: reserve(f"hotel-{room}", city, ctx.effect_key))
    ctx.progress(2, 3, "the hotel is booked")
    letter = await ctx.step("letter", lambda: f"Flight {flight['id']}, hotel {hotel['id']}, {nights} nights in {city}.")
    return {"flight": flight, "hotel": hotel, "letter": letter}


async def reserve(what: str, city: str, key: str) -> dict:
    """Stands for a request to a service that knows idempotency keys: the same key books once."""
    await asyncio.sleep(3)
    if not key:
        raise Retry("the service is busy", after=2, not_started=True)
    return {"id": f"{what}-{city}-{key[-4:]}".lower()}


if __name__ == "__main__":
    worker.run()
