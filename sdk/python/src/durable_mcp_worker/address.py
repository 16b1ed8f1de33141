"""Where the server is, and with which credential it is asked. Connects to nothing.

Without a token of its own a worker uses the one that a server without authentication writes for its user:
`servers/<host>_<port>.token` in its data folder. It is read again when the server refuses it, because a restarted
server writes a new one.
"""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:7400"


class ServerAddress:
    """The base of the server's paths, and the token for it."""

    def __init__(
        self, url: str | None = None, token: str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._env = os.environ if env is None else env
        text = url or self._env.get("DURABLE_MCP_URL") or DEFAULT_URL
        parts = urlsplit(text)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the server's address is no http or https URL; write it as {DEFAULT_URL}")
        if parts.username or parts.password or parts.query or parts.fragment:
            # It may hold a password and is not repeated.
            raise ValueError(f"the server's address has more than host, port and path; write it as {DEFAULT_URL}")
        self.host = parts.hostname
        self.port = parts.port or (443 if parts.scheme == "https" else 80)
        self.base = f"{parts.scheme}://{parts.netloc}{_without_endpoint(parts.path)}"
        self._given = token or self._env.get("DURABLE_MCP_TOKEN") or None

    @property
    def is_loopback(self) -> bool:
        """True when the address is one of this machine alone."""
        if self.host.lower() == "localhost":
            return True
        address = _ip(self.host)
        return address is not None and address.is_loopback

    @property
    def is_local_token(self) -> bool:
        """True when the token comes from the server's own file and may change with a restart."""
        return self._given is None

    def token(self) -> str | None:
        """The token given, else the server's local one as it is now; `None` when there is neither."""
        return self._given if self._given else self._local_token()

    def _local_token(self) -> str | None:
        if not self.is_loopback:
            return None
        folder = data_folder(self._env) / "servers"
        address = _ip(self.host)
        if address is not None:
            found = _read(folder / f"{address}_{self.port}.token")
            if found:
                return found
        # A loopback name reaches any of the loopback addresses.
        for path in sorted(folder.glob(f"*_{self.port}.token")):
            found = _read(path)
            if found:
                return found
        return None


def data_folder(env: Mapping[str, str]) -> Path:
    """The data folder of the server of this user."""
    if env.get("DURABLE_MCP_DATA_DIR"):
        return Path(env["DURABLE_MCP_DATA_DIR"])
    data_home = env.get("XDG_DATA_HOME", "")
    if os.path.isabs(data_home):
        return Path(data_home) / "durable-mcp"
    home = Path(env.get("HOME") or os.path.expanduser("~"))
    return home / ("Library/Application Support" if sys.platform == "darwin" else ".local/share") / "durable-mcp"


def _without_endpoint(path: str) -> str:
    """The path without an MCP endpoint (`…/mcp`, `…/mcp/NAMESPACE`) and without a slash at its end."""
    parts = path.rstrip("/").split("/")
    for from_end in (1, 2):
        if len(parts) > from_end and parts[-from_end] == "mcp":
            return "/".join(parts[:-from_end])
    return "/".join(parts)


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _read(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip() or None
    except OSError:
        return None
