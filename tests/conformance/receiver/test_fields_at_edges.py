"""Each field of feedback and of others' scores that a page names, at its type's edges: one item's matter alone."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from collector.config.tree import Config
from collector.records.feedback import FeedbackRules
from collector.records.sent_feedback import SentFeedback
from tests.support.documented_edges import TIMES, TRACE
from tests.support.examples import IS_LONG
from tests.support.otlp import JSON, post
from tests.support.receiving import serving
from tests.support.service import ROOT

HALF = json.loads('"\\ud83d"')
TEXTS: Sequence[Any] = (
    *("x", "", "x" * 512, HALF, 7, None, [], {}),
    *("x" * 513, "x" * 70_000, f"{HALF}x", "a\0b", "\u202e"),
)
NUMBERS: Sequence[Any] = (
    *(0, -0.0, 1e308, -1e308, 10**400, float("nan"), float("inf"), 2**64),
    *("1", None, [True]),
)
IDS = (TRACE.upper(), "0" * 32, TRACE[:-1], *TEXTS)
FEEDBACK: Mapping[str, Sequence[Any]] = {
    "trace_id": IDS,
    "span_id": (TRACE[:16], TRACE[:16].upper(), *TEXTS),
    "value": (True, False, *NUMBERS),
    "label": ("thumbs_up", "FAIL", *TEXTS),
    "scale": (
        *({"min": low, "max": high} for low in NUMBERS for high in NUMBERS),
        *({}, {"min": 1}, {"most": 1}, {"min": "x"}, [], None, 3),
    ),
    "comment": (*TEXTS, "x" * 20_000),
    "kind": ("human", "code", "llm", "HUMAN", *TEXTS),
    "time": (*TIMES, *TEXTS),
    **dict.fromkeys(("session_id", "service", "task_id", "name", "source", "id"), TEXTS),
}
SCORES: Mapping[str, Sequence[Any]] = {
    **{name: FEEDBACK[name] for name in ("trace_id", "span_id", "value", "label", "scale", "time")},
    "scope": ("session", "trace", *TEXTS),
    **dict.fromkeys(("session_id", "service", "name", "explanation", "version", "id"), TEXTS),
}
PAIRED = 12 if IS_LONG else 6
"""Edges of a field that stand beside those of each other field: `make soak` tries more."""
AT_ONCE = 200
"""Items of a request here, which stand between two good ones."""


def documented(page: str) -> set[str]:
    """The fields that the first column of a page's table names."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    table = text.partition("| field | means |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, or | with | or )?)+)", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_field_is_tried() -> None:
    beside_trace_id = {"span_id"}

    assert documented("feedback.md") | beside_trace_id == {*FEEDBACK}
    assert {*FEEDBACK} == {*SentFeedback.__struct_fields__}
    assert documented("external-evaluators.md") | beside_trace_id == {*SCORES}


def items(edges: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every edge alone, each field's edges beside those of each other field, and some of all at once."""
    good = {"trace_id": TRACE, "name": "thumb", "value": True}
    for name, each in edges.items():
        yield from ({**good, name: edge} for edge in each)
    for (one, first), (two, second) in itertools.combinations(edges.items(), 2):
        for a, b in itertools.product(first[:PAIRED], second[:PAIRED]):
            yield {**good, one: a, two: b}
    for turn in range(12):
        yield {name: each[turn % len(each)] for name, each in edges.items()}


@pytest.mark.parametrize(
    ("path", "named", "edges"),
    [("/v1/feedback", "feedback", FEEDBACK), ("/v1/evaluations", "evaluations", SCORES)],
)
async def test_an_item_at_the_edge_of_its_types_costs_no_other_item(
    path: str, named: str, edges: Mapping[str, Sequence[Any]]
) -> None:
    good = {"trace_id": TRACE, "name": "thumb", "value": True}
    every = items(edges)
    accepted = refused = 0
    async with serving(feedback=FeedbackRules.of(Config())) as served:
        url = served.url.replace("/v1/traces", path)
        while some := [*itertools.islice(every, AT_ONCE)]:
            reply = await post(url, json.dumps({named: [good, *some, good]}).encode(), JSON)
            said = reply.json()
            assert reply.status_code == 200, said
            rejected = {each["index"] for each in said["rejected"]}
            assert not rejected & {0, len(some) + 1}, said["rejected"]
            assert all(each["message"] for each in said["rejected"])
            assert said["accepted"] + len(rejected) == len(some) + 2
            accepted, refused = accepted + said["accepted"], refused + len(rejected)

    assert min(accepted, refused) > 500
