"""One run of the judged evaluators of a subject: their inputs, the calls that serve them, their outcomes.

Facts that contradict a near-perfect verdict are noted beside it.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from msgspec.structs import replace

from evaluators.declare import Spec, is_a
from evaluators.expectations import Expectation
from evaluators.judging.answers import AnswerError, to_block
from evaluators.judging.calls import AGAIN, JudgeCalls, JudgeHandle, Missing, Skip, parse_failure
from evaluators.judging.prompt import SKIPPED, JudgeError
from evaluators.matching.repeats import repeats
from evaluators.matching.tool_calls import check_arguments, failures, span_ids
from evaluators.model import JSON, Failure, Outcome, ToolCall, Trace
from evaluators.plan import Configured
from evaluators.resources import Block, Conversation, Expected, Extraction, Judge, Question
from evaluators.run import failed, failure_of, not_applicable, settle, skipped

EXTRACTION = "extraction"
FAULTS = (Exception, SystemExit, KeyboardInterrupt)
"""What a third party's code may raise that is its own outcome: no Ctrl-C reaches a judge process."""


@dataclass(slots=True)
class _JudgedEvaluator:
    """One evaluator, the arguments it has so far and the questions still open."""

    configured: Configured
    unexpected: str | None  # why it does not apply: nothing is expected of the subject
    questions: dict[str, tuple[str, type[Block]]] = field(
        default_factory=dict[str, tuple[str, type[Block]]]
    )
    """By key in the answer: parameter name and block; blocks that are known without asking are not in it."""
    arguments: dict[str, object] = field(default_factory=dict[str, object])
    missing: Missing | None = None

    @property
    def name(self) -> str:
        return self.configured.spec.name


@dataclass
class JudgedRun:
    """Asks as few questions as possible, once more for missing answers, and gives every evaluator one outcome."""

    due: Sequence[Configured]
    subject: Trace | Conversation
    calls: JudgeCalls
    separate: bool
    _extraction: Extraction | None = None
    _preface: str = ""

    async def outcomes(self, resources: Mapping[Any, object]) -> tuple[Outcome, ...]:
        """One per due evaluator, in order. `resources`: further resources by type; None = there is none of it."""
        states = [
            _JudgedEvaluator(each, self._unexpected(each.spec, resources)) for each in self.due
        ]
        expected = [each for each in states if each.unexpected is None]
        await self._extract(expected)
        for state in expected:
            self._prepare(state, resources)
        await self._judge(expected)
        return tuple([await self._outcome(each, resources) for each in states])

    def _unexpected(self, spec: Spec, resources: Mapping[Any, object]) -> str | None:
        kinds = set(spec.resources.values())
        if Expectation in kinds and resources.get(Expectation) is None:
            return "nothing is expected of this trace"
        if Expected in kinds and isinstance(self.subject, Conversation):
            return None if self.subject.answered else "no output is expected of any turn"
        return None

    async def _extract(self, states: Iterable[_JudgedEvaluator]) -> None:
        wanting = [
            state for state in states if Extraction in state.configured.spec.resources.values()
        ]
        if not wanting:
            return
        question = {EXTRACTION: Extraction.question(self.subject, {})}
        owners = [state.name for state in wanting]
        why: Missing = Failure(type="parse_error", message="no extraction")
        for stage in (EXTRACTION, EXTRACTION + AGAIN):
            answer = await self.calls.ask(
                stage, question, model=None, owners=owners, usable=_holds_extraction
            )
            if isinstance(answer, Failure | Skip):
                why = answer
                if not _is_unreadable(answer):
                    break
                continue
            try:
                self._extraction = to_block(answer[EXTRACTION], Extraction)
            except AnswerError as error:
                why = parse_failure(error)
                self.calls.count_useless(why)
                continue
            self._preface = _preface(self._extraction)
            return
        for state in wanting:
            state.missing = why

    def _prepare(self, state: _JudgedEvaluator, resources: Mapping[Any, object]) -> None:
        """Set the arguments that are known, and note what must be asked for."""
        spec = state.configured.spec
        blocks = {name: kind for name, kind in spec.resources.items() if _is_block(kind)}
        for name, kind in spec.resources.items():
            if kind is Extraction:
                state.arguments[name] = self._extraction
            elif kind is Judge:
                state.arguments[name] = JudgeHandle(self.calls, state.name, state.configured.model)
            elif kind is Conversation:
                state.arguments[name] = self.subject
            elif kind is Expected and isinstance(self.subject, Conversation):
                state.arguments[name] = Expected(traces=self.subject.expected)
            elif kind in resources:
                state.arguments[name] = resources[kind]
        for name, kind in blocks.items():
            try:
                known = kind.known(self.subject, self._extraction)
            except FAULTS as error:
                state.missing = failure_of(error)
                return
            if known is not None:
                state.arguments[name] = known
            else:
                key = _key(spec.name) if len(blocks) == 1 else f"{_key(spec.name)}__{name}"
                state.questions[key] = (name, kind)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _judge(self, states: Sequence[_JudgedEvaluator]) -> None:
        open_states = [state for state in states if state.questions and state.missing is None]
        for stage, model, group in self._groups(open_states):
            await self._ask(stage, model, group)
        again: dict[str | None, list[_JudgedEvaluator]] = {}
        for state in open_states:
            if state.questions and _is_unreadable(state.missing):
                again.setdefault(state.configured.model, []).append(state)
        for model, group in again.items():
            await self._ask("judging" + AGAIN, model, group)

    def _groups(
        self, states: Sequence[_JudgedEvaluator]
    ) -> Iterator[tuple[str, str | None, Sequence[_JudgedEvaluator]]]:
        own = [state for state in states if self.separate or state.configured.model is not None]
        shared = [state for state in states if state not in own]
        if shared:
            yield "judging", None, shared
        for state in own:
            yield f"judging_{_key(state.name)}"[:64], state.configured.model, [state]

    async def _ask(self, stage: str, model: str | None, states: Sequence[_JudgedEvaluator]) -> None:
        questions: dict[str, Question] = {}
        for state in states:
            try:
                questions |= self._questions(state)
            except FAULTS as error:
                state.missing = failure_of(error)
                state.questions = {}
        asked = [state for state in states if state.questions]
        if not questions:
            return
        owners = [state.name for state in asked]
        answer = await self.calls.ask(
            stage,
            questions,
            model=model,
            owners=owners,
            usable=lambda answer: any(self._can_use(state, answer) for state in asked),
            preface=self._preface,
        )
        if isinstance(answer, Failure | Skip):
            for state in asked:
                # An answer that could not be read says more than that asking again failed.
                state.missing = state.missing or answer
            return
        if not sum(self._take(state, answer) for state in asked):
            nothing = "no entry of the answer could be used"
            self.calls.count_useless(Failure(type="parse_error", message=nothing))

    def _questions(self, state: _JudgedEvaluator) -> dict[str, Question]:
        options = state.configured.options
        return {
            key: kind.question(self.subject, options) for key, (_, kind) in state.questions.items()
        }

    def _take(self, state: _JudgedEvaluator, answer: Mapping[str, JSON]) -> int:
        """Set the blocks that the answer holds; returns how many could be used."""
        state.missing = None
        before = len(state.questions)
        for key, (name, kind) in list(state.questions.items()):
            try:
                block = self._block(state, answer, key, kind)
            except FAULTS as error:
                state.missing = parse_failure(error)
            else:
                state.arguments[name] = block
                del state.questions[key]
        return before - len(state.questions)

    def _can_use(self, state: _JudgedEvaluator, answer: Mapping[str, JSON]) -> bool:
        """Whether the answer holds any block that the evaluator asked for."""
        for key, (_, kind) in state.questions.items():
            with suppress(*FAULTS):  # also what a third party's check raises
                self._block(state, answer, key, kind)
                return True
        return False

    def _block(
        self, state: _JudgedEvaluator, answer: Mapping[str, JSON], key: str, kind: type[Block]
    ) -> Block:
        block = to_block(answer.get(key), kind)
        block.check(self.subject, state.configured.options)
        return block

    # --- outcomes -----------------------------------------------------------------------------------------------------

    async def _outcome(self, state: _JudgedEvaluator, resources: Mapping[Any, object]) -> Outcome:
        if state.unexpected is not None:
            return not_applicable(state.configured, "no_expectations", state.unexpected)
        return self._annotated(state, await self._scored(state), resources)

    async def _scored(self, state: _JudgedEvaluator) -> Outcome:
        configured = state.configured
        if isinstance(state.missing, Skip):
            return skipped(configured, state.missing.reason)
        if state.missing is not None:
            return failed(configured, state.missing)
        subject = self.subject
        first = subject.session if isinstance(subject, Conversation) else subject
        try:
            score = configured.spec.function(first, **state.arguments, **configured.options)
            if inspect.isawaitable(score):
                score = await score
            return settle(configured, score)
        except JudgeError as error:
            if error.type in SKIPPED:
                return skipped(configured, error.type)
            return failed(configured, error.failure)
        except FAULTS as error:
            return failed(configured, failure_of(error))

    def _annotated(
        self, state: _JudgedEvaluator, outcome: Outcome, resources: Mapping[Any, object]
    ) -> Outcome:
        more: dict[str, Any] = {"judge": self.calls.use_of(state.name)}
        cuts = [outcome.truncated, self.calls.truncated.get(state.name)]
        more["truncated"] = "; ".join(filter(None, cuts)) or None
        expectation = resources.get(Expectation)
        if isinstance(expectation, Expectation) and _uses(expectation, state.configured.spec):
            more["expectation"] = expectation.digest
        if isinstance(self.subject, Trace) and outcome.state == "scored":
            facts = span_ids(against(state.name, self.subject))
            more["evidence"] = tuple(dict.fromkeys([*outcome.evidence, *facts]))
            more["contradiction"] = contradicts(state.name, outcome.score or 0.0, self.subject)
        return replace(outcome, **more)


def reads_expected(spec: Spec) -> bool:
    kinds = spec.resources.values()
    return any(kind is Expected or (_is_block(kind) and kind.reads_expected) for kind in kinds)


def _uses(expectation: Expectation, spec: Spec) -> bool:
    if Expectation in spec.resources.values():
        return True
    return expectation.output is not None and reads_expected(spec)


def _is_block(kind: Any) -> TypeGuard[type[Block]]:
    return is_a(kind, Block) and kind is not Extraction


def _holds_extraction(answer: Mapping[str, JSON]) -> bool:
    try:
        to_block(answer.get(EXTRACTION), Extraction)
    except AnswerError:
        return False
    return True


def _is_unreadable(missing: object) -> bool:
    """Whether asking again may help: there was an answer."""
    return isinstance(missing, Failure) and missing.type == "parse_error"


def _key(name: str) -> str:
    # A name of ours has no double underscore, so a third party's `package/name` cannot meet one.
    key = name.replace("/", "__")
    return "".join(char if char.isalnum() or char == "_" else "_" for char in key)


def _preface(extraction: Extraction) -> str:
    plan = "".join(f"\n{at}. {step}" for at, step in enumerate(extraction.plan, 1)) or " none"
    return (
        "What an earlier reading of this recording found:\n"
        f"task: {extraction.task}\noutcome: {extraction.outcome}\nplan:{plan}\n\n"
    )


# --- facts against a verdict -----------------------------------------------------------------------------------------

NEAR_PERFECT = 0.9  # a judge's score from which on facts contradict it


def against(evaluator: str, trace: Trace) -> tuple[ToolCall, ...]:
    """The tool calls that contradict a perfect score, in order.

    tool_correctness: errors not recovered, arguments against the tool's schema. argument_correctness: the latter.
    confidence: errors not recovered, identical repeats. step_efficiency: the latter. Other evaluators: no calls.
    """
    lost, _ = failures(trace.tool_calls)
    found = {
        "tool_correctness": lambda: (*lost, *check_arguments(trace).misfits),
        "argument_correctness": lambda: check_arguments(trace).misfits,
        "confidence": lambda: (*lost, *repeats(trace.tool_calls)),
        "step_efficiency": lambda: repeats(trace.tool_calls),
    }.get(evaluator, tuple[ToolCall, ...])()
    wrong = {id(call) for call in found}
    return tuple(call for call in trace.tool_calls if id(call) in wrong)


def contradicts(evaluator: str, value: float, trace: Trace) -> bool:
    """Whether a verdict of at least 0.9 meets a fact against it.

    task_completion is contradicted by a last model call that failed or a trace that ended in error.
    """
    if value < NEAR_PERFECT:
        return False
    if evaluator == "task_completion":
        failed = bool(trace.model_calls) and trace.model_calls[-1].error is not None
        return failed or trace.status == "error"
    return bool(against(evaluator, trace))
