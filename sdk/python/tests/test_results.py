"""From what a handler returns to MCP results. Most of it is in `sdk/vectors/results.json`, played against the server."""

import dataclasses
import json
import unittest
from typing import Any

from durable_mcp_worker.results import encode, error_result, failure, tool_result


@dataclasses.dataclass
class Receipt:
    id: int


class Results(unittest.TestCase):
    def test_a_dataclass_is_an_object(self) -> None:
        self.assertEqual(
            json.loads(tool_result(Receipt(3))),
            {"content": [{"type": "text", "text": '{"id":3}'}], "structuredContent": {"id": 3}},
        )

    def test_an_object_with_a_content_of_its_own_is_no_result(self) -> None:
        self.assertEqual(json.loads(tool_result({"content": "page"}))["structuredContent"], {"content": "page"})

    def test_what_is_no_json_is_an_error(self) -> None:
        for value in (float("nan"), object(), {1, object()}):
            with self.subTest(value), self.assertRaises((TypeError, ValueError)):
                encode(value)

    def test_text_keeps_its_characters_and_a_lone_surrogate_is_escaped(self) -> None:
        self.assertEqual(encode("naïve ☃"), '"naïve ☃"')
        self.assertEqual(encode("\ud800 ☃"), '"\\ud800 \\u2603"')

    def test_errors(self) -> None:
        no: dict[str, Any] = json.loads(error_result('"no"'))
        self.assertEqual(no, {"content": [{"type": "text", "text": '"no"'}], "isError": True})
        members = json.loads("{" + failure("Größen Fehler" + "x" * 99, "m", True, {"retry_after_ms": 5}) + "}")
        self.assertEqual((members["retryable"], members["retry_after_ms"]), (True, 5))
        self.assertRegex(members["error"]["code"], r"^Gr__en_Fehlerx{51}$")
