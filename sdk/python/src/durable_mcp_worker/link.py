"""One request to the server and its answer. Retries nothing and knows no route's meaning."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx

from .address import ServerAddress
from .version import VERSION

CONNECT_TIMEOUT_S = 5.0


class Away(Exception):
    """The server was not reached, is going down, or can not answer now: the same request may be sent again."""


class Problem(Exception):
    """The server refuses (RFC 9457). `code` is stable; `detail` and `next` are for people."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.code = str(body.get("code") or "")
        self.detail = str(body.get("detail") or body.get("title") or "")
        self.next = str(body.get("next") or "")
        super().__init__(f"{status} {self.code}: {self.detail}" + (f" ({self.next})" if self.next else ""))


class Link:
    """Connections to one server, kept open. Belongs to the event loop it is used on first."""

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._headers = {"Content-Type": "application/json", "User-Agent": f"durable-mcp-worker-python/{VERSION}"}
        self._token = ""
        self.read_token()
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=16, keepalive_expiry=30)
        # A proxy for the internet is none for this machine.
        self._client = httpx.AsyncClient(
            limits=limits,
            trust_env=not address.is_loopback,
            verify=ssl.create_default_context() if address.base.startswith("https") else False,
        )

    def read_token(self) -> bool:
        """Reads the token again; true when it is another one than before."""
        token = self._address.token() or ""
        changed, self._token = token != self._token, token
        self._headers.pop("Authorization", None)
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        return changed

    async def post(self, route: str, body: str, timeout_s: float) -> Any:
        """The answer's JSON. Raises `Problem` for a refusal and `Away` for everything that may pass."""
        timeout = httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S)
        try:
            response = await self._client.post(
                self._address.base + route, content=body.encode(), headers=self._headers, timeout=timeout
            )
        except httpx.HTTPError as error:
            raise Away(f"{type(error).__name__}: {error}".rstrip(": ")) from error
        if response.status_code == 200:
            try:
                return json.loads(response.content)
            except ValueError as error:
                raise Away("the answer is no JSON") from error
        try:
            problem = json.loads(response.content)
        except ValueError:
            problem = {}
        problem = problem if isinstance(problem, dict) else {}
        if response.status_code >= 500 or response.status_code in (408, 429):
            raise Away(f"{response.status_code} {problem.get('code', '')}".strip())
        raise Problem(response.status_code, problem)

    async def close(self) -> None:
        await self._client.aclose()
