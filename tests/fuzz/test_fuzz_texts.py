"""Texts that nobody means well with: a judge's answers, reprs, schemas, settings. Only declared errors come out."""

from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import strategies as st

from collector.base.errors import ConfigError
from collector.config.load import from_file, load
from collector.config.plan import expectations_from, plan_settings
from collector.config.tree import Config
from evaluators.dialects.decoding.reprs import read_fields, read_repr
from evaluators.errors import Unjudgeable
from evaluators.judging.answers import AnswerError, read_object, read_rating
from evaluators.judging.prompt import fenced
from evaluators.model import Trace
from tests.fuzz.conftest import RANDOM, Fuzz, corpus
from tests.support.evaluating import argument_error
from tests.support.growth import within_cpu
from tests.support.mutation import TEXTS, torn

pytestmark = pytest.mark.timeout(7200)

PIECES = st.lists(st.sampled_from(TEXTS) | st.text(max_size=12), max_size=8).map("".join)
MARKER = "5eed5eed5eed5eed5eed5eed"
SETTINGS = Path(__file__).parents[2] / "spanwise.yaml"
KEYWORDS = """
type properties items anyOf allOf $ref $defs enum pattern a not minItems uniqueItems multipleOf dependentSchemas
unevaluatedProperties const
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYWORDS.split()), inner, max_size=4)
    ),
    max_leaves=15,
)


def check_answer(text: str) -> None:
    for read in (read_object, read_rating):
        try:
            read(text)
        except AnswerError:
            continue


def check_repr(text: str) -> None:
    read_repr(text)
    read_fields(text)


def check_schema(schema: object, arguments: object) -> None:
    with within_cpu(5):
        try:
            argument_error(schema, arguments)  # pyright: ignore[reportArgumentType]
        except Unjudgeable:
            return


def test_answers_of_a_judge_are_read_or_refused(fuzz: Fuzz) -> None:
    fuzz(check_answer, PIECES)


def test_reprs_are_read_or_none(fuzz: Fuzz) -> None:
    fuzz(check_repr, PIECES)


def test_no_text_leaves_its_fence(fuzz: Fuzz) -> None:
    def check(text: str) -> None:
        assert fenced(text, MARKER).count(MARKER) == 2

    fuzz(check, PIECES)


def test_schemas_are_judged_or_not_judgeable(fuzz: Fuzz) -> None:
    fuzz(check_schema, JSON, JSON)


def test_torn_settings_are_a_tree_or_one_line(fuzz: Fuzz, tmp_path: Path) -> None:
    whole = SETTINGS.read_bytes()
    file = tmp_path / "spanwise.yaml"

    def check(random: Random) -> None:
        file.write_bytes(torn(whole, random))
        check_settings(file)

    fuzz(check, RANDOM)
    assert isinstance(yaml.safe_load(whole), dict)


def check_settings(file: Path) -> None:
    found = from_file(file)
    assert isinstance(found, dict) or "\n" not in found
    with suppress(ConfigError):
        load([file], {}, [])


def test_overrides_are_a_tree_or_one_line_each(fuzz: Fuzz) -> None:
    def check(path: str, value: str) -> None:
        with suppress(ConfigError):
            load([], {}, [f"{path}={value}"])

    paths = st.sampled_from(
        ["workers", "log.kind", "judge.sample", "redaction.patterns", "admin.port"]
    )
    fuzz(check, paths | PIECES, PIECES)


EXPECTED = b"""[
{"match": {"task": "refund-1", "turn": 1}, "output": "8", "regex": "^[0-9]+$", "answer_uses_tools": true},
{"match": {"input": "What is 5 + 3?"}, "tools": [{"name": "calculator", "arguments": {"a": 5, "b": [3]}}]},
{"match": {"session_id": "s"}, "json_schema": {"type": "object"}, "outcomes": ["issued"], "emphasis": "x"}
]"""


@pytest.mark.parametrize("name", ["expectations.yaml", "expectations.jsonl"])
def test_torn_expectations_are_entries_or_one_error(fuzz: Fuzz, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    whole = EXPECTED if name.endswith("yaml") else EXPECTED[2:-2].replace(b"},\n", b"}\n")
    file.write_bytes(whole)
    assert len(expectations_from(plan_settings(Config(expectations=file)))) == 3

    def check(random: Random) -> None:
        file.write_bytes(torn(whole, random))
        try:
            entries = expectations_from(plan_settings(Config(expectations=file)))
        except ConfigError:
            return
        trace = Trace(
            trace_id="a" * 32, service="s", agent="a", session_id="s", session_source="trace"
        )
        entries.find(trace, 1)

    fuzz(check, RANDOM)


def test_texts_that_once_broke_something_do_not() -> None:
    for file in corpus("answers"):
        check_answer(file.read_text())
    for file in corpus("reprs"):
        check_repr(file.read_text())
    for file in corpus("settings"):
        check_settings(file)
