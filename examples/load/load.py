#!/usr/bin/env python3
"""Load from an asyncio program: N clients in a closed loop, each answer checked. Standard library only, Python 3.10+.

    python3 examples/load/load.py http://127.0.0.1:7400/mcp --clients 16 --seconds 5

Each call has an idempotency key and a message of its own, and its answer has to hold that message. One call in ten is
sent twice: the second answer has to name the execution of the first. Prints one JSON object; ends with 1 when an answer
was wrong or none came. The token of a server that asks for one is taken from DURABLE_MCP_TOKEN.
"""

import argparse
import asyncio
import json
import os
import sys
import time
import uuid
from urllib.parse import urlsplit

REVISION = "2026-07-28"


class Client:
    """One HTTP/1.1 connection that is used again and again."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname, parts.port or 80
        self.path = parts.path or "/mcp"
        self.reader: asyncio.StreamReader | None = None

    async def post(self, headers: dict[str, str], body: bytes) -> bytes:
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
        lines = [f"POST {self.path} HTTP/1.1", f"Host: {self.host}:{self.port}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        if "transfer-encoding: chunked" in head:
            answer = await self.chunks()
        else:
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            answer = await self.reader.readexactly(length)
        if not head.startswith("http/1.1 200"):
            raise RuntimeError(f"{head.splitlines()[0]}: {answer[:200].decode(errors='replace')}")
        if "text/event-stream" in head:
            # The last event of a stream is the answer.
            data = [line[5:].strip() for line in answer.splitlines() if line.startswith(b"data:")]
            return data[-1]
        return answer

    async def chunks(self) -> bytes:
        answer = b""
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            answer += await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()
        return answer

    async def call(self, tool: str, arguments: dict, key: str) -> dict:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": REVISION,
            "Mcp-Method": "tools/call",
            "Mcp-Name": tool,
        }
        if token := os.environ.get("DURABLE_MCP_TOKEN"):
            headers["Authorization"] = f"Bearer {token}"
        meta = {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "load.py", "version": "1"},
            "durable-mcp/idempotencyKey": key,
        }
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return json.loads(await self.post(headers, json.dumps(message).encode()))

    def close(self) -> None:
        if self.reader is not None:
            self.writer.close()
            self.reader = None


class Tally:
    def __init__(self) -> None:
        self.latencies_ms: list[float] = []
        self.repeats = self.wrong = 0
        self.errors: dict[str, int] = {}

    def percentile(self, part: float) -> float:
        return round(self.latencies_ms[min(len(self.latencies_ms) - 1, int(len(self.latencies_ms) * part))], 3)


def execution_of(answer: dict) -> str:
    return answer["result"]["_meta"]["durable-mcp/execution"]["id"]


async def work(url: str, run: str, number: int, end: float, tally: Tally) -> None:
    client, n = Client(url), 0
    while time.perf_counter() < end:
        n += 1
        key = f"{run}-{number}-{n}"
        begun = time.perf_counter()
        try:
            answer = await asyncio.wait_for(client.call("demo_echo", {"message": key}, key), 60)
            tally.latencies_ms.append((time.perf_counter() - begun) * 1000)
            right = answer.get("result", {}).get("content", [{}])[0].get("text") == key
            if right and n % 10 == 0:
                again = await client.call("demo_echo", {"message": key}, key)
                tally.repeats += 1
                right = execution_of(again) == execution_of(answer)
            tally.wrong += not right
        except (OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.TimeoutError) as error:
            name = type(error).__name__
            tally.errors[name] = tally.errors.get(name, 0) + 1
            client.close()
            await asyncio.sleep(0.05)
    client.close()


async def main() -> int:
    parser = argparse.ArgumentParser(description="Load on a DurableMCP server with the demo tools.")
    parser.add_argument("url", help="its MCP endpoint, such as http://127.0.0.1:7400/mcp")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    tally, run, begun = Tally(), uuid.uuid4().hex[:8], time.perf_counter()
    end = begun + asked.seconds
    await asyncio.gather(*(work(asked.url, run, number, end, tally) for number in range(asked.clients)))
    elapsed, calls = time.perf_counter() - begun, len(tally.latencies_ms)
    tally.latencies_ms.sort()
    report = {
        "calls": calls,
        "calls_per_s": round(calls / elapsed, 1),
        "p50_ms": tally.percentile(0.5) if calls else None,
        "p99_ms": tally.percentile(0.99) if calls else None,
        "repeats": tally.repeats,
        "wrong": tally.wrong,
        "errors": tally.errors,
    }
    print(json.dumps(report))
    return 0 if calls and not tally.wrong else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
