"""From a function's annotations to the JSON Schema of its arguments, and from arguments to what the function takes.

Known are str, int, float, bool, None, list, tuple[X, ...], set, dict, Any, Optional and unions, Literal, Enum,
dataclasses, TypedDict and Annotated (a text in it is the description). Anything else is an error when the tool is
registered: `input_schema=` says it by hand then.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union

Convert = Callable[[Any, str], Any]


class InvalidArguments(Exception):
    """The arguments are not what the schema says; the text is for the caller."""


class Typed(NamedTuple):
    """The schema of one type, and how a JSON value becomes one of it."""

    schema: dict[str, Any]
    convert: Convert


class Signature(NamedTuple):
    """How a handler is called: the schema of its arguments, its context parameter, and the arguments it takes."""

    schema: dict[str, Any]
    context_name: str | None
    bind: Callable[[Any], dict[str, Any]]


def signature(function: Callable[..., Any], contexts: tuple[type, ...], schema: dict[str, Any] | None) -> Signature:
    """Reads a handler. With `schema` the arguments are passed on as they come.

    A parameter whose type is one of `contexts`, or that is named `ctx`, gets the context; one named `arguments`
    gets all arguments as one dict.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    context_name = None
    taken: dict[str, inspect.Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if hints.get(name) in contexts or (name == "ctx" and name not in hints):
            context_name = name
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(f"{function.__name__}: {name} can not be passed by name")
        else:
            taken[name] = parameter
    if list(taken) == ["arguments"]:
        return Signature(schema or {"type": "object"}, context_name, lambda arguments: {"arguments": arguments or {}})
    if schema is not None:
        return Signature(schema, context_name, lambda arguments: arguments or {})
    fields: dict[str, tuple[Typed, bool]] = {}
    is_open = False
    for name, parameter in taken.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            is_open = True
            continue
        known = typed(hints.get(name, Any), name)
        if parameter.default is not parameter.empty:
            known = known._replace(schema=_with_default(known.schema, parameter.default))
        fields[name] = (known, parameter.default is parameter.empty)
    known = _object(fields, is_open=is_open, make=lambda values: values)
    return Signature(known.schema, context_name, lambda arguments: known.convert(arguments or {}, ""))


def typed(hint: Any, where: str) -> Typed:
    """The schema and conversion of an annotation. Raises `TypeError` for one that has no schema."""
    simple = _SIMPLE.get(hint) if isinstance(hint, collections.abc.Hashable) else None
    if simple is not None:
        return simple
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        known = typed(inner[0], where)
        texts = [extra for extra in inner[1:] if isinstance(extra, str)]
        return known._replace(schema={**known.schema, "description": texts[0]}) if texts else known
    if origin is not None and origin in _WRAPPERS:
        return typed(inner[0], where)
    if origin is Literal:
        return _choice(list(inner))
    if origin in (Union, types.UnionType):
        return _union([typed(each, where) for each in inner])
    if hint in (list, tuple, set) or origin in (list, tuple, set, collections.abc.Sequence):
        if origin is tuple and (len(inner) != 2 or inner[1] is not Ellipsis):
            raise TypeError(f"{where}: a tuple of fixed length has no simple schema; use list[...] or input_schema=")
        build = origin if origin in (tuple, set) else (hint if hint in (tuple, set) else list)
        return _array(typed(inner[0], where) if inner else _SIMPLE[Any], build)
    if hint is dict or origin in (dict, collections.abc.Mapping):
        if inner and inner[0] is not str:
            raise TypeError(f"{where}: the keys of a JSON object are texts")
        return _mapping(typed(inner[1], where) if inner else _SIMPLE[Any])
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        known = _choice([member.value for member in hint])
        return Typed(known.schema, lambda value, path: hint(known.convert(value, path)))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint, where)
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        required: frozenset[str] = getattr(hint, "__required_keys__", frozenset())
        fields = {name: (typed(each, f"{where}.{name}"), name in required) for name, each in hints.items()}
        return _object(fields, is_open=False, make=lambda values: values)
    raise TypeError(f"{where}: {hint!r} has no JSON Schema here; give the tool an input_schema=")


def _simple(schema: dict[str, Any], kinds: tuple[type, ...], build: Callable[[Any], Any] | None = None) -> Typed:
    name = schema.get("type")

    def convert(value: Any, path: str) -> Any:
        # In Python a bool is an int; in JSON it is not.
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InvalidArguments(f"{path or 'the arguments'}: expected {name}, got {_kind(value)}")
        return build(value) if build else value

    return Typed(schema, convert)


def _whole(schema: dict[str, Any]) -> Typed:
    def convert(value: Any, path: str) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value % 1 != 0:
            raise InvalidArguments(f"{path}: expected integer, got {_kind(value)}")
        return int(value)

    return Typed(schema, convert)


# Python 3.10 has neither.
_WRAPPERS = tuple(getattr(typing, name) for name in ("Required", "NotRequired") if hasattr(typing, name))

_SIMPLE: dict[Any, Typed] = {
    str: _simple({"type": "string"}, (str,)),
    int: _whole({"type": "integer"}),
    float: _simple({"type": "number"}, (int, float), float),
    bool: _simple({"type": "boolean"}, (bool,)),
    None: _simple({"type": "null"}, (type(None),)),
    type(None): _simple({"type": "null"}, (type(None),)),
    Any: Typed({}, lambda value, path: value),
    object: Typed({}, lambda value, path: value),
}


def _choice(values: list[Any]) -> Typed:
    def convert(value: Any, path: str) -> Any:
        for each in values:
            if each == value and isinstance(each, bool) == isinstance(value, bool):
                return each
        raise InvalidArguments(f"{path}: expected one of {', '.join(map(repr, values))}")

    kinds = {str: "string", bool: "boolean", int: "integer"}
    names = {kinds.get(type(value)) for value in values}
    one = names.pop() if len(names) == 1 else None
    return Typed({"type": one, "enum": values} if one else {"enum": values}, convert)


def _union(members: list[Typed]) -> Typed:
    def convert(value: Any, path: str) -> Any:
        reasons = []
        for member in members:
            try:
                return member.convert(value, path)
            except InvalidArguments as reason:
                reasons.append(str(reason))
        raise InvalidArguments("; or ".join(reasons))

    schemas = [member.schema for member in members]
    if {} in schemas:
        return Typed({}, convert)
    if all(set(schema) == {"type"} and isinstance(schema["type"], str) for schema in schemas):
        return Typed({"type": [schema["type"] for schema in schemas]}, convert)
    return Typed({"anyOf": schemas}, convert)


def _array(item: Typed, build: Callable[[list[Any]], Any]) -> Typed:
    def convert(value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise InvalidArguments(f"{path}: expected array, got {_kind(value)}")
        return build([item.convert(each, f"{path}[{at}]") for at, each in enumerate(value)])

    schema = {"type": "array", "items": item.schema} if item.schema else {"type": "array"}
    return Typed({**schema, "uniqueItems": True} if build is set else schema, convert)


def _mapping(item: Typed) -> Typed:
    def convert(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidArguments(f"{path}: expected object, got {_kind(value)}")
        return {name: item.convert(each, f"{path}.{name}") for name, each in value.items()}

    schema = {"type": "object"}
    return Typed({**schema, "additionalProperties": item.schema} if item.schema else schema, convert)


def _dataclass(kind: type, where: str) -> Typed:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: dict[str, tuple[Typed, bool]] = {}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        known = typed(hints[field.name], f"{where}.{field.name}")
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if field.default is not dataclasses.MISSING:
            known = known._replace(schema=_with_default(known.schema, field.default))
        fields[field.name] = (known, required)
    return _object(fields, is_open=False, make=lambda values: kind(**values))


def _object(fields: dict[str, tuple[Typed, bool]], *, is_open: bool, make: Callable[[dict[str, Any]], Any]) -> Typed:
    converts = {name: known.convert for name, (known, _) in fields.items()}
    needed = [name for name, (_, required) in fields.items() if required]

    def convert(value: Any, path: str) -> Any:
        if not isinstance(value, dict):
            raise InvalidArguments(f"{path or 'the arguments'}: expected object, got {_kind(value)}")
        values: dict[str, Any] = {}
        for name, each in value.items():
            inner = converts.get(name)
            at = f"{path}.{name}" if path else name
            if inner is not None:
                values[name] = inner(each, at)
            elif is_open:
                values[name] = each
            else:
                raise InvalidArguments(f"{at}: there is no such argument")
        for name in needed:
            if name not in values:
                raise InvalidArguments(f"{path}.{name}: is missing" if path else f"{name}: is missing")
        return make(values)

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: known.schema for name, (known, _) in fields.items()},
    }
    if needed:
        schema["required"] = needed
    if not is_open:
        schema["additionalProperties"] = False
    return Typed(schema, convert)


def _with_default(schema: dict[str, Any], default: Any) -> dict[str, Any]:
    if isinstance(default, enum.Enum):
        default = default.value
    plain = default is None or isinstance(default, (str, int, float, bool))
    return {**schema, "default": default} if plain else schema


def _kind(value: Any) -> str:
    """The JSON name of a value's kind; never the value, which may be a secret."""
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (str, "string"), ((int, float), "number"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "object"
