"""Each field that docs/feedback.md names, at its type's edges, alone and beside each other one: one item's matter."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from collector.config.tree import Config
from collector.records.feedback import FeedbackRules
from collector.records.sent_feedback import SentFeedback
from tests.support.examples import IS_LONG
from tests.support.otlp_http import post
from tests.support.receiving import serving
from tests.support.service import ROOT

ROW = re.compile(r"^\| ((?:`\w+`(?:, or | with | or )?)+)", re.MULTILINE)
TRACE = "0af7651916cd43dd8448eb211c80319c"
GOOD = {"trace_id": TRACE, "name": "thumb", "value": True}
TEXTS: tuple[Any, ...] = (
    "x",
    "",
    "x" * 512,
    "x" * 513,
    "\ud83d",
    "\udc00x",
    "a\0b",
    "\u202e",
    7,
    None,
    [],
    {},
)
NUMBERS: tuple[Any, ...] = (
    0,
    -0.0,
    1e308,
    -1e308,
    10**400,
    float("nan"),
    float("inf"),
    "1",
    None,
    [True],
    2**64,
)
ENDS = (
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-23:59",
    "2026-02-30T00:00:00Z",
    "1970-01-01",
)
EDGES: Mapping[str, tuple[Any, ...]] = {
    "trace_id": (*TEXTS, TRACE.upper(), "0" * 32, TRACE[:-1]),
    "span_id": (*TEXTS, TRACE[:16], TRACE[:16].upper()),
    "session_id": TEXTS,
    "service": TEXTS,
    "task_id": TEXTS,
    "name": TEXTS,
    "value": (*NUMBERS, True, False),
    "label": (*TEXTS, "thumbs_up", "FAIL"),
    "scale": (
        *({"min": low, "max": high} for low in NUMBERS for high in NUMBERS),
        {},
        {"min": 1},
        {"most": 1},
        [],
        None,
    ),
    "comment": (*TEXTS, "x" * 20_000, "x" * 70_000),
    "kind": (*TEXTS, "human", "code", "llm", "HUMAN"),
    "source": TEXTS,
    "id": TEXTS,
    "time": (*TEXTS, *ENDS),
}
PAIRED = 12 if IS_LONG else 6
"""Edges of a field that stand beside those of each other field: `make soak` tries more."""
AT_ONCE = 200
"""Items of a request here: each stands between two good ones."""


def documented() -> set[str]:
    page = (ROOT / "docs" / "feedback.md").read_text("utf-8")
    table = page.partition("| field | means |")[2].partition("\n\n")[0]
    return {name for row in ROW.findall(table) for name in re.findall(r"`(\w+)`", row)}


def test_every_field_of_the_page_is_tried() -> None:
    beside_trace_id = {"span_id"}

    assert documented() | beside_trace_id == set(EDGES) == set(SentFeedback.__struct_fields__)


def items() -> Iterator[dict[str, Any]]:
    """Every edge alone, and each field's edges beside those of each other field, the longest texts once."""
    for name, edges in EDGES.items():
        yield from ({**GOOD, name: edge} for edge in edges)
    for (one, first), (two, second) in itertools.combinations(EDGES.items(), 2):
        for a, b in itertools.product(first[:PAIRED], second[:PAIRED]):
            yield {**GOOD, one: a, two: b}
    yield {name: edges[0] for name, edges in EDGES.items()}


async def test_an_item_at_the_edge_of_its_types_costs_no_other_item() -> None:
    rules = FeedbackRules.of(Config())
    async with serving(feedback=rules) as served:
        url = served.url.replace("/v1/traces", "/v1/feedback")
        accepted = refused = 0
        for some in _batches():
            body = json.dumps({"feedback": [GOOD, *some, GOOD]})
            reply = await post(url, body.encode(), headers={"content-type": "application/json"})
            said = reply.json()
            assert reply.status_code == 200, said
            rejected = {each["index"] for each in said["rejected"]}
            assert not rejected & {0, len(some) + 1}, said["rejected"]
            assert said["accepted"] + len(rejected) == len(some) + 2
            accepted, refused = accepted + said["accepted"], refused + len(rejected)

        assert accepted > 500
        assert refused > 500


def _batches() -> Iterator[list[dict[str, Any]]]:
    every = items()
    while some := list(itertools.islice(every, AT_ONCE)):
        yield some
