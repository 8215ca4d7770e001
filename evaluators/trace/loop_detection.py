"""Loop detection (PandaProbe): does the output repeat one of the last three of its session?"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Self, TypeAlias

import msgspec
from msgspec.structs import replace

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.formulas.distribution import clamp, rounded
from evaluators.matching.questions import asked_again, cosines, packed_direction
from evaluators.matching.repeats import repeats
from evaluators.matching.text import QUESTION, clip, cosine_distance, jaccard, words
from evaluators.model import JSON, Score, ToolCall, Trace
from evaluators.resources import WINDOW, Embedder, History, Sketch, Vector

LOOP = 0.5  # similarity above which an output counts as a repetition of an earlier one in session formulas
ONCE_MORE = 1  # how often a question may be answered again in the same way: someone wants to hear it once more
TELLING = 24  # bytes of content words below which answers coincide: "Yes.", "Done.", a label, a word's translation

_NUMBER = re.compile(r"\d+")


class ComparedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn, as far as it is compared with others."""

    output: str = ""  # what is compared of it: the first 8 KiB; empty: it has none, or is packed
    vector: bytes = b""  # of a packed output, the direction of its vector (`packed_direction`)
    words: str = ""  # the same: its different words, between spaces
    numbers: tuple[str, ...] = ()  # the same: the different numbers in it, in order
    input: str | None = None  # the question's first KiB; None: it is not known
    has_looked: bool = False  # whether it looked at the facts: it called tools, all of which succeeded, no two alike
    span_id: str | None = None  # of a turn that is a part of its trace

    @property
    def has_output(self) -> bool:
        return bool(self.output or self.vector)

    def packed(self, vector: Vector) -> ComparedTurn:
        return replace(
            self,
            output="",
            vector=packed_direction(vector),
            words=" ".join(sorted(words(self.output))),
            numbers=tuple(sorted(_numbers(self))),
        )


Similar: TypeAlias = Callable[[ComparedTurn, Sequence[ComparedTurn]], Sequence[float]]
"""The cosine similarity of an output with each of some earlier ones, from 0 to 1."""


class LoopSketch(Sketch, frozen=True, kw_only=True, omit_defaults=True):
    """What later turns are compared with, and what of the trace itself is compared with earlier ones."""

    said: ComparedTurn  # the trace's own question and answer
    turns: tuple[ComparedTurn, ...] = ()
    """Of a trace that holds several turns, the first ones, which earlier traces are compared with."""
    later: Score | None = None
    """The worst score of its other turns; None: it has no others, or they have none."""
    count: int = 0  # turns that it holds

    @classmethod
    def of(cls, trace: Trace, embedder: Embedder) -> Self:
        said, *turns = _embedded((_own(trace), *_parts(trace)), embedder)
        scores = _scores(turns, (), _packed, range(WINDOW, len(turns)))
        return cls(said=said, turns=tuple(turns[:WINDOW]), later=_worst(scores), count=len(turns))

    def compared(self, previous: Sequence[Self | None]) -> Score:
        before = [None if each is None else each.said for each in previous]
        if not self.count:
            return _compared(self.said, before, _packed)
        scores = _scores(self.turns, before, _packed, range(len(self.turns)), self.count)
        return _worst(scores, self.later) or _no_two()


@pandaprobe(version="2", reads={"text", "session"}, assumed_counts=True, sketch=LoopSketch)
def loop_detection(trace: Trace, *, history: History, embedder: Embedder) -> Score:
    """1 - the greatest cosine similarity x word overlap with an earlier output; the first 8 KiB each are read.

    A loop is the same answer to the same question, for the third time within four turns. The same answer to another
    question, with other numbers, once more, too short to tell, or after a new look at the facts (tool calls that
    succeeded, no two alike) is not a loop: it passes, and counts nothing in session formulas. Where the questions are
    not known, the first repetition counts. Of a trace that holds several turns, each is compared with those before it,
    and the worst one is the score.
    """
    before = [
        ComparedTurn(output=clip(each.output or ""), input=_question(each.input))
        for each in history.previous
    ]

    def similar(mine: ComparedTurn, earlier: Sequence[ComparedTurn]) -> Sequence[float]:
        vector, *others = embedder.embed([each.output for each in (mine, *earlier)])
        return [1 - cosine_distance(vector, other) for other in others]

    if not trace.turns:
        return _compared(_own(trace), before, similar)
    turns = _parts(trace)
    return _worst(_scores(turns, before, similar, range(len(turns)))) or _no_two()


def _own(trace: Trace) -> ComparedTurn:
    return _said(trace.output, trace.input, trace.tool_calls)


def _parts(trace: Trace) -> list[ComparedTurn]:
    return [
        _said(
            turn.output,
            turn.input,
            [
                call
                for call in trace.tool_calls
                if turn.start_time_unix_nano <= call.start_time_unix_nano <= turn.end_time_unix_nano
            ],
            turn.span_id,
        )
        for turn in trace.turns
    ]


def _said(
    output: str | None, question: str | None, calls: Sequence[ToolCall], span_id: str | None = None
) -> ComparedTurn:
    return ComparedTurn(
        output=clip(output or ""),
        input=_question(question),
        has_looked=bool(calls)
        and all(call.error is None and call.arguments is not None for call in calls)
        and not repeats(calls),
        span_id=span_id,
    )


def _question(text: str | None) -> str | None:
    return None if text is None else clip(text, QUESTION)


def _embedded(turns: Sequence[ComparedTurn], embedder: Embedder) -> list[ComparedTurn]:
    texts = [each.output for each in turns if each.output]
    vectors = iter(embedder.embed(texts) if texts else ())
    return [each.packed(next(vectors)) if each.output else each for each in turns]


def _packed(mine: ComparedTurn, earlier: Sequence[ComparedTurn]) -> Sequence[float]:
    return cosines(mine.vector, [each.vector for each in earlier])


def _scores(
    turns: Sequence[ComparedTurn],
    before: Sequence[ComparedTurn | None],
    similar: Similar,
    places: Iterable[int],
    count: int | None = None,
) -> Iterator[Score]:
    """The scores of the turns at these places of one trace of `count` turns; `before` are the traces before it."""
    every = [*before, *turns]
    for place in places:
        end = len(before) + place
        score = _compared(turns[place], every[max(0, end - WINDOW) : end], similar)
        if score.value is not None:
            at = f"turn {place + 1} of {len(turns) if count is None else count}"
            span_id = turns[place].span_id
            yield replace(
                score,
                explanation=f"{at}: {score.explanation}",
                evidence=(span_id,) if span_id is not None else (),
            )


def _worst(scores: Iterable[Score], *more: Score | None) -> Score | None:
    """The first of the worst; None: there is none."""
    return max(chain(scores, filter(None, more)), key=_badness, default=None)


def _badness(score: Score) -> tuple[float, float]:
    return score.risk or 0.0, 1 - (score.value or 0.0)


def _compared(
    mine: ComparedTurn, previous: Sequence[ComparedTurn | None], similar: Similar
) -> Score:
    if not previous:
        return _nothing("no session context provided", "the first trace of its session")
    if not mine.has_output:
        return _nothing("empty_output", "the trace has no output text")
    earlier = [(index, each) for index, each in enumerate(previous) if each and each.has_output]
    if not earlier:
        return _nothing("no_previous_outputs", "no earlier trace of the session has output text")
    similarities = similar(mine, [each for _, each in earlier])
    said = _words(mine)
    hybrids: list[float] = []
    comparisons: list[JSON] = []
    for (index, each), similarity in zip(earlier, similarities, strict=True):
        overlap = jaccard(said, _words(each))
        hybrids.append(similarity * overlap)
        comparisons.append(
            {
                "trace_index": index,
                "cosine_similarity": rounded(similarity),
                "jaccard_similarity": rounded(overlap),
                "hybrid_score": rounded(similarity * overlap),
            }
        )
    worst = max(hybrids)
    looped: dict[int, float] = {}
    excuse = None
    if worst > LOOP:
        again = asked_again(mine.input, [each and each.input for each in previous])
        looped = {
            index: hybrid
            for (index, each), hybrid in zip(earlier, hybrids, strict=True)
            if hybrid > LOOP and index in again and not _progressed(mine, each)
        }
        excuse = _excuse(mine, previous, looped)
    return Score(
        value=rounded(clamp(1 - worst)),
        risk=0.0 if excuse else max(looped.values(), default=0.0),
        success=None if excuse is None else True,
        explanation=f"closest of {amount(len(earlier), 'earlier output')}: similarity {worst:.4f}"
        + ("" if excuse is None else f", {excuse}"),
        metadata={
            "window_size": len(earlier),
            "max_hybrid": rounded(worst),
            "comparisons": comparisons,
        },
    )


def _excuse(
    mine: ComparedTurn, previous: Sequence[ComparedTurn | None], looped: Collection[int]
) -> str | None:
    """Why a repeated output is not a loop; None when it is one.

    Args:
        mine: Whose output it is.
        previous: The turns before it.
        looped: The places of those that gave the same answer to the same question.
    """
    if not looped:
        return "to another question, or with other numbers"
    before = (previous[index] for index in looped)
    if mine.input is None or any(each is None or each.input is None for each in before):
        return None
    if len(looped) <= ONCE_MORE:
        return "asked for once more"
    if sum(len(word.encode(errors="replace")) for word in _words(mine)) < TELLING:
        return "too short to tell"
    return "after a new look at the facts" if mine.has_looked else None


def _progressed(mine: ComparedTurn, earlier: ComparedTurn) -> bool:
    if mine.input is None or earlier.input is None:
        return False
    return _numbers(mine) != _numbers(earlier)


def _numbers(said: ComparedTurn) -> frozenset[str]:
    return frozenset(said.numbers if said.vector else _NUMBER.findall(said.output))


def _words(said: ComparedTurn) -> frozenset[str]:
    return frozenset(said.words.split()) if said.vector else words(said.output)


def _nothing(note: str, explanation: str) -> Score:
    return Score.assume(1.0, explanation, {"note": note})


def _no_two() -> Score:
    return _nothing("empty_output", "no two turns of the trace have output text")
