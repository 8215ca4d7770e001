"""Loop detection (PandaProbe): does the output repeat one of the last three of its session?"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import NamedTuple, Self

import msgspec
from msgspec.structs import replace

from evaluators.counts import amount
from evaluators.declare import pandaprobe
from evaluators.formulas.distribution import clamp, rounded
from evaluators.matching.questions import asked_again, cosines, packed_direction
from evaluators.matching.repeats import repeats
from evaluators.matching.text import QUESTION, clip, jaccard, words
from evaluators.model import JSON, Score, ToolCall, Trace
from evaluators.resources import WINDOW, Embedder, History, Sketch

LOOP = 0.5  # similarity above which an output counts as a repetition of an earlier one in session formulas
ONCE_MORE = 1  # how often a question may be answered again in the same way: someone wants to hear it once more
TELLING = 24  # bytes of content words below which answers coincide: "Yes.", "Done.", a label, a word's translation

_NUMBER = re.compile(r"\d+")


class ComparedTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn, as far as it is compared with others: of its output, the first 8 KiB."""

    vector: bytes = (
        b""  # the direction of its output's vector (`packed_direction`); empty: it has no output
    )
    words: str = ""  # the output's different words, between spaces
    numbers: tuple[str, ...] = ()  # the different numbers in the output, in order
    input: str | None = None  # the question's first KiB; None: it is not known
    has_looked: bool = False  # whether it looked at the facts: it called tools, all of which succeeded, no two alike
    span_id: str | None = None  # of a turn that is a part of its trace


class _Turn(NamedTuple):
    output: str | None
    question: str | None
    calls: Sequence[ToolCall] = ()
    span_id: str | None = None


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
        return cls.made(*_packed(_turns(trace), embedder))

    @classmethod
    def made(cls, said: ComparedTurn, *turns: ComparedTurn) -> Self:
        scores = _scores(turns, (), range(WINDOW, len(turns)), len(turns))
        return cls(said=said, turns=turns[:WINDOW], later=_worst(scores), count=len(turns))

    def compared(self, previous: Sequence[Self | None]) -> Score:
        return self.beside([None if each is None else each.said for each in previous])

    def beside(self, before: Sequence[ComparedTurn | None]) -> Score:
        if not self.count:
            return _compared(self.said, before)
        scores = _scores(self.turns, before, range(len(self.turns)), self.count)
        no_two = _nothing("empty_output", "no two turns of the trace have output text")
        return _worst(scores, self.later) or no_two


@pandaprobe(version="2", reads={"text", "session"}, assumed_counts=True, sketch=LoopSketch)
def loop_detection(trace: Trace, *, history: History, embedder: Embedder) -> Score:
    """1 - the greatest cosine similarity x word overlap with an earlier output; the first 8 KiB each are read.

    A loop is the same answer to the same question, for the third time within four turns. The same answer to another
    question, with other numbers, once more, too short to tell, or after a new look at the facts (tool calls that
    succeeded, no two alike) is not a loop: it passes, and counts nothing in session formulas. Where the questions are
    not known, the first repetition counts. Of a trace that holds several turns, each is compared with those before it,
    and the worst one is the score.
    """
    before = [_Turn(each.output, each.input) for each in history.previous]
    is_compared = trace.turns or (trace.output and any(each.output for each in before))
    own = _turns(trace)
    packed = _packed([*own, *before], embedder if is_compared else None)
    return LoopSketch.made(*packed[: len(own)]).beside(packed[len(own) :])


def _turns(trace: Trace) -> list[_Turn]:
    """The trace's own question and answer, then the turns that it holds."""
    parts = [
        _Turn(
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
    return [_Turn(trace.output, trace.input, trace.tool_calls), *parts]


def _packed(turns: Sequence[_Turn], embedder: Embedder | None) -> list[ComparedTurn]:
    """`embedder`: None where nothing is compared and so any vector will do."""
    outputs = [clip(each.output or "") for each in turns]
    texts = list(filter(None, outputs))
    vectors = iter(embedder.embed(texts)) if embedder and texts else repeat((1.0,))
    return [
        ComparedTurn(
            vector=packed_direction(next(vectors)) if output else b"",
            words=" ".join(sorted(words(output))),
            numbers=tuple(sorted(set(_NUMBER.findall(output)))),
            input=None if turn.question is None else clip(turn.question, QUESTION),
            has_looked=bool(turn.calls)
            and all(call.error is None and call.arguments is not None for call in turn.calls)
            and not repeats(turn.calls),
            span_id=turn.span_id,
        )
        for turn, output in zip(turns, outputs, strict=True)
    ]


def _scores(
    turns: Sequence[ComparedTurn],
    before: Sequence[ComparedTurn | None],
    places: Iterable[int],
    count: int,
) -> Iterator[Score]:
    """The scores of the turns at these places of one trace of `count` turns; `before` are the traces before it."""
    every = [*before, *turns]
    for place in places:
        end = len(before) + place
        score = _compared(turns[place], every[max(0, end - WINDOW) : end])
        if score.value is not None:
            span_id = turns[place].span_id
            yield replace(
                score,
                explanation=f"turn {place + 1} of {count}: {score.explanation}",
                evidence=(span_id,) if span_id is not None else (),
            )


def _worst(scores: Iterable[Score], *more: Score | None) -> Score | None:
    return max(chain(scores, filter(None, more)), key=_badness, default=None)


def _badness(score: Score) -> tuple[float, float]:
    return score.risk or 0.0, 1 - (score.value or 0.0)


def _compared(mine: ComparedTurn, previous: Sequence[ComparedTurn | None]) -> Score:
    if not previous:
        return _nothing("no session context provided", "the first trace of its session")
    if not mine.vector:
        return _nothing("empty_output", "the trace has no output text")
    earlier = [(index, each) for index, each in enumerate(previous) if each and each.vector]
    if not earlier:
        return _nothing("no_previous_outputs", "no earlier trace of the session has output text")
    similarities = cosines(mine.vector, [each.vector for _, each in earlier])
    said = frozenset(mine.words.split())
    hybrids: list[float] = []
    comparisons: list[JSON] = []
    for (index, each), similarity in zip(earlier, similarities, strict=True):
        overlap = jaccard(said, frozenset(each.words.split()))
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

    `looped`: the places of the previous turns that gave the same answer to the same question.
    """
    if not looped:
        return "to another question, or with other numbers"
    before = (previous[index] for index in looped)
    if mine.input is None or any(each is None or each.input is None for each in before):
        return None
    if len(looped) <= ONCE_MORE:
        return "asked for once more"
    if sum(len(word.encode(errors="replace")) for word in mine.words.split()) < TELLING:
        return "too short to tell"
    return "after a new look at the facts" if mine.has_looked else None


def _progressed(mine: ComparedTurn, earlier: ComparedTurn) -> bool:
    if mine.input is None or earlier.input is None:
        return False
    return mine.numbers != earlier.numbers


def _nothing(note: str, explanation: str) -> Score:
    return Score.assume(1.0, explanation, {"note": note})
