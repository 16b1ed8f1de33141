"""From annotations to schemas, and from arguments to what a function takes."""

import dataclasses
import enum
import unittest
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

from durable_mcp_worker import Context, Worker
from durable_mcp_worker.schema import InvalidArguments, signature, typed


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Money:
    amount: int
    currency: Literal["EUR", "USD"] = "EUR"


class Address(TypedDict, total=False):
    street: str


class Schemas(unittest.TestCase):
    def test_each_annotation_has_its_schema(self) -> None:
        money = {
            "type": "object",
            "properties": {
                "amount": {"type": "integer"},
                "currency": {"type": "string", "enum": ["EUR", "USD"], "default": "EUR"},
            },
            "required": ["amount"],
            "additionalProperties": False,
        }
        cases: list[tuple[Any, dict[str, Any]]] = [
            (str, {"type": "string"}),
            (float, {"type": "number"}),
            (Any, {}),
            (Optional[int], {"type": ["integer", "null"]}),
            (Union[str, int], {"type": ["string", "integer"]}),
            (Optional[Money], {"anyOf": [money, {"type": "null"}]}),
            (list[str], {"type": "array", "items": {"type": "string"}}),
            (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (dict, {"type": "object"}),
            (Literal["a", 1], {"enum": ["a", 1]}),
            (Colour, {"type": "string", "enum": ["red", "blue"]}),
            (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
            (Money, money),
            (Address, {"type": "object", "properties": {"street": {"type": "string"}}, "additionalProperties": False}),
        ]
        for hint, schema in cases:
            with self.subTest(hint):
                self.assertEqual(typed(hint, "x").schema, schema)

    def test_what_has_no_schema_is_an_error_at_registration(self) -> None:
        for hint in (object(), bytes, tuple[int, str], dict[int, str]):
            with self.subTest(hint), self.assertRaises(TypeError):
                typed(hint, "x")

    def test_arguments_become_what_the_function_takes(self) -> None:
        def tool(price: Money, colour: Colour, at: float, tags: Optional[list[str]] = None) -> None: ...

        bound = signature(tool, (), None).bind({"price": {"amount": 3}, "colour": "red", "at": 1})
        self.assertEqual(bound, {"price": Money(3), "colour": Colour.RED, "at": 1.0})

    def test_arguments_that_do_not_fit_are_named_and_not_shown(self) -> None:
        def tool(price: Money, note: str = "") -> None: ...

        bind = signature(tool, (), None).bind
        cases = [
            ({}, "price: is missing"),
            ({"price": {}}, "price.amount: is missing"),
            ({"price": {"amount": "secret"}}, "price.amount: expected integer, got string"),
            ({"price": {"amount": True}}, "price.amount: expected integer, got boolean"),
            ({"price": {"amount": 1}, "colour": 1}, "colour: there is no such argument"),
        ]
        for arguments, text in cases:
            with self.subTest(arguments), self.assertRaises(InvalidArguments) as refused:
                bind(arguments)
            self.assertEqual(str(refused.exception), text)

    def test_a_handler_may_take_everything_or_anything(self) -> None:
        worker = Worker(url="http://127.0.0.1:1", token="t")

        @worker.tool
        async def everything(arguments: dict, ctx: Context) -> None:
            """All of them."""

        @worker.tool("by_hand", input_schema={"type": "object", "minProperties": 1})
        def anything(**arguments: Any) -> None: ...

        definitions = {name: tool.definition for name, tool in worker._tools.items()}
        self.assertEqual(
            definitions["everything"],
            {"name": "everything", "description": "All of them.", "inputSchema": {"type": "object"}},
        )
        self.assertEqual(definitions["by_hand"]["inputSchema"], {"type": "object", "minProperties": 1})
        self.assertEqual(worker._tools["everything"].call.bind({"a": 1}), {"arguments": {"a": 1}})
