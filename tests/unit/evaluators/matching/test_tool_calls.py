"""Schemas out of traces are data: nothing is fetched, no pattern of exponential cost runs."""

import socket
from typing import Any

import pytest

from evaluators.errors import Unjudgeable
from evaluators.matching.json_values import encoded
from tests.support.evaluating import argument_error
from tests.support.table import for_each


def test_a_reference_to_another_document_is_never_fetched() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"

        with pytest.raises(Unjudgeable):
            argument_error({"$ref": address}, {})

        with pytest.raises(BlockingIOError):
            server.accept()


@for_each(
    "schema,value,error",
    [
        ({"type": "object"}, {}, None),
        ({"type": "object"}, [], "[] is not of type 'object'"),
        ({"properties": {"a": {"properties": {"b": {"type": "integer"}}}}}, {"a": {"b": "x"}},
         "a/b: 'x' is not of type 'integer'"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}, "x", None),
        ({"pattern": r"^(\d{3}-)+\d{4}$"}, "555-123-4567", None),
        ({"pattern": r"^(\d{3}-)+\d{4}$"}, "555-12", r"'555-12' does not match '^(\\d{3}-)+\\d{4}$'"),
        ({"pattern": r"^[\u00e9-\u00eb]\/$"}, "\u00ea/", None),
        ({"pattern": r"\d"}, "\u0663", "'\u0663' does not match '\\\\d'"),
        ({"pattern": "^(?!a)"}, "a", None),
        (True, {"anything": 1}, None),
        (False, {}, "False schema does not allow {}"),
    ],
)  # fmt: skip
def test_an_error_in_arguments_names_its_path(schema: Any, value: Any, error: str | None) -> None:
    assert argument_error(schema, value) == error


def test_a_half_surrogate_in_arguments_is_judged_like_any_text() -> None:
    assert argument_error({"type": "object"}, {"city": "\ud800"}) is None
    assert encoded({"b": 1, "a": "\ud800"}) == b'{"a": "\\ud800", "b": 1}'


def test_the_first_of_several_errors_is_the_same_in_every_process() -> None:
    arguments = {f"a{number:02}": number for number in range(50)}

    error = argument_error({"additionalProperties": {"type": "string"}}, arguments)

    assert error == "a00: 0 is not of type 'string'"
