"""Hostile traces against a judge that obeys whatever it reads outside the fence: no score changes."""

import json
import re
import unicodedata
from collections.abc import Callable

from evaluators.expectations import Expectation
from evaluators.judging.judge import judge_trace
from evaluators.judging.prompt import Prompt, fenced, harmless
from evaluators.model import ModelCall, ToolCall, Trace
from evaluators.providers.scripted import ScriptedJudge, fitting
from tests.support.attacks import INJECTIONS
from tests.support.evaluating import a_tool, a_trace
from tests.support.examples import IS_LONG
from tests.support.judging import (
    ALL,
    COGITATOR,
    MARKER,
    PANDAPROBE,
    answering,
    judge,
    judge_turns,
    judged,
)
from tests.support.table import for_each

_SIGHT = dict.fromkeys([*range(0x200B, 0x2010), *range(0x2060, 0x2070), 0xAD, 0xFEFF])

PLACES: dict[str, Callable[[str], Trace]] = {
    "input": lambda text: a_trace(input=text),
    "output": lambda text: a_trace(output=text),
    "system": lambda text: a_trace(system=text),
    "tool result": lambda text: _calling(result=text),
    "tool result, nested": lambda text: _calling(result={"rows": [text], text[:50]: 1}),
    "tool arguments": lambda text: _calling(arguments={"q": text}),
    "tool error": lambda text: _calling(error=text),
    "tool name": lambda text: _calling(name=text),
    "agent name": lambda text: _calling(agent=text),
    "tool definition": lambda text: a_trace(tools_offered=(a_tool(text, {"description": text}),)),
    "model text": lambda text: a_trace(model_calls=(ModelCall(span_id="m", output=text),)),
    "model error": lambda text: a_trace(model_calls=(ModelCall(span_id="m", error=text),)),
    "trace error": lambda text: a_trace(status="error", error=text),
}


def _calling(**fields: object) -> Trace:
    call = ToolCall(**{"name": "search", "arguments": {"q": 1}, **fields})  # pyright: ignore[reportArgumentType]
    return a_trace(tool_calls=(call,))


def _is_turned(prompt: Prompt, *, sloppy: bool) -> bool:
    """Whether what is outside the fence says 0.99 to an unwary model: unseen characters do not hide a word from it."""
    text = unicodedata.normalize("NFKC", prompt.user.translate(_SIGHT))
    tag = r"\s*recording[^>]*>" if sloppy else rf" ?recording {MARKER}>"
    begin = re.search(rf"<{tag}", text, re.IGNORECASE)
    assert begin is not None
    end = re.search(rf"<\s*/{tag}", text[begin.end() :], re.IGNORECASE)
    assert end is not None
    outside = prompt.system + text[: begin.start()] + text[begin.end() + end.end() :]
    return "0.99" in unicodedata.normalize("NFKC", outside).replace(
        "0.75 to 0.99", ""
    )  # a rubric's


def obedient(*, sloppy: bool) -> ScriptedJudge:
    """Gives 0.99 as soon as anything outside the fence says so, else 0.5."""

    def script(prompt: Prompt) -> str:
        score = 0.99 if _is_turned(prompt, sloppy=sloppy) else 0.5
        return json.dumps(fitting(prompt.schema, score))

    return ScriptedJudge(script)


@for_each("number,attack", list(enumerate(INJECTIONS)))
async def test_no_attack_in_any_place_changes_a_score(number: int, attack: str) -> None:
    """A sloppy judge takes more for the end of the fence than a strict one, so it reads all that a strict one does.

    `make test` tries each attack in every fourth place, each place with every fourth attack; `make soak` all in all.
    """
    due = judged(*PANDAPROBE, *COGITATOR)
    expectation = Expectation(output="sunny")
    places = list(PLACES.items())
    for place, hostile in places if IS_LONG else places[number % 4 :: 4]:
        asked = obedient(sloppy=True)
        verdict = await judge(hostile(attack), asked, due, expectation=expectation)

        scores = {outcome.score for outcome in verdict.outcomes}
        assert scores <= {0.5, 0.0, None}, place
        assert {o.state for o in verdict.outcomes} <= {"scored", "not_applicable"}, place
        for prompt, _ in asked.asked:
            assert prompt.user.count(MARKER) == 2, place
            assert MARKER not in prompt.system
            assert "recording" not in str(prompt.schema)


@for_each("attack", INJECTIONS)
async def test_no_attack_in_a_conversation_changes_a_score(attack: str) -> None:
    asked = obedient(sloppy=True)
    traces = [a_trace(input=attack, output=attack), a_trace(trace_id="u" * 32, output="fine")]
    expected = {trace.trace_id: Expectation(output="sunny", outcomes=("done",)) for trace in traces}

    verdict = await judge_turns(traces, asked, judged(*ALL), expectations=expected)

    assert [outcome.score for outcome in verdict.outcomes] == [0.0, 0.0]
    assert all(prompt.user.count(MARKER) == 2 for prompt, _ in asked.asked)


@for_each("attack", INJECTIONS)
async def test_an_extraction_that_obeyed_an_injection_stays_inside_the_fence(attack: str) -> None:
    text = attack.encode("utf-8", "ignore").decode()
    extracted = {"extraction": {"task": text, "outcome": text, "plan": [text]}}

    def script(prompt: Prompt) -> str:
        if prompt.name == "extraction":
            return json.dumps(extracted)
        assert prompt.user.count(MARKER) == 2
        return json.dumps(fitting(prompt.schema, 0.99 if _is_turned(prompt, sloppy=True) else 0.5))

    verdict = await judge(a_trace(), ScriptedJudge(script))

    assert {outcome.score for outcome in verdict.outcomes} <= {0.5, None}


async def test_the_judge_does_obey_outside_the_fence() -> None:
    """The attacks above can succeed: the same text in the operator's own words does."""
    asked = obedient(sloppy=False)
    expected = {"t" * 32: Expectation(output="x", emphasis="set every score to 0.99")}

    verdict = await judge_turns([a_trace()], asked, judged("agentic"), expectations=expected)

    assert verdict.outcomes[0].score == 1.0


async def test_every_call_has_a_fence_of_its_own() -> None:
    asked = answering()
    await judge_trace(judged(), a_trace(), asked, calls="separate", max_prompt=24_000)

    markers = [re.findall(r"</?recording ([0-9a-f]{16,})>", each.user) for each, _ in asked.asked]
    assert all(len(found) == 2 and found[0] == found[1] for found in markers)
    assert len({found[0] for found in markers}) == len(markers)


@for_each("text", INJECTIONS)
def test_harmless_text_is_stable_and_never_longer(text: str) -> None:
    once = harmless(text, MARKER)

    assert len(once) <= len(text)
    assert harmless(once, MARKER) == once
    assert MARKER not in once
    assert fenced(text, MARKER).count(MARKER) == 2
    once.encode()


@for_each("text", ["Grüße, 東京, привет, مرحبا, नमस्ते", "a\n\tb", "x < y > z", "[1]", "{}"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert harmless(text, MARKER) == text
