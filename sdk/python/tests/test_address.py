"""Where the server is and which token is used: `sdk/vectors/addresses.json`."""

import json
import tempfile
import unittest
from pathlib import Path

from durable_mcp_worker import ServerAddress

VECTORS = Path(__file__).parents[2] / "vectors" / "addresses.json"


class Addresses(unittest.TestCase):
    def setUp(self) -> None:
        self.vectors = json.loads(VECTORS.read_text("utf-8"))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.data = Path(folder.name)
        (self.data / "servers").mkdir()
        for path, text in self.vectors["tokens"].items():
            (self.data / path).write_text(text, "utf-8")

    def test_base_and_token_are_found(self) -> None:
        for case in self.vectors["good"]:
            with self.subTest(case):
                env = {**case["env"], "DURABLE_MCP_DATA_DIR": str(self.data)}
                address = ServerAddress(case["url"], case.get("given"), env)
                self.assertEqual((address.base, address.token()), (case["base"], case["token"]))

    def test_what_is_no_address_is_refused_and_not_repeated(self) -> None:
        for url in self.vectors["bad"]:
            with self.subTest(url), self.assertRaises(ValueError) as refused:
                ServerAddress(url, None, {})
            self.assertNotIn("secret", str(refused.exception))

    def test_a_new_token_of_the_server_is_seen(self) -> None:
        address = ServerAddress("http://127.0.0.1:7400", None, {"DURABLE_MCP_DATA_DIR": str(self.data)})
        self.assertEqual(address.token(), "for-7400")
        (self.data / "servers/127.0.0.1_7400.token").write_text("another\n", "utf-8")
        self.assertEqual(address.token(), "another")
