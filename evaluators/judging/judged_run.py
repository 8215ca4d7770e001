"""The judged evaluators of one subject: what each must be told, who is asked in which call, what becomes of each."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from msgspec.structs import replace

from evaluators.declare import Spec
from evaluators.expectations import Expectation
from evaluators.formulas.calls import span_ids
from evaluators.formulas.contradiction import against, contradicts
from evaluators.judging.answers import AnswerError, to_block
from evaluators.judging.calls import Asking, Line, Missing, Skip, parse_failure
from evaluators.judging.client import SKIPPED, JudgeError
from evaluators.model import JSON, Failure, Outcome, Trace
from evaluators.outcome import failed, failure_of, not_applicable, settle, skipped
from evaluators.plan import Configured
from evaluators.resources import Block, Conversation, Expected, Extraction, Judge, Question

EXTRACTION = "extraction"


@dataclass(slots=True, kw_only=True)
class _Seat:
    """One evaluator and what it knows so far."""

    configured: Configured
    questions: dict[str, tuple[str, type[Block]]]
    """By key in the answer: parameter name and block; what is known without asking is not in it."""
    given: dict[str, object] = field(default_factory=dict[str, object])
    missing: Missing | None = None

    @property
    def name(self) -> str:
        return self.configured.spec.name


class Panel:
    """Asks as little as possible, once more for what was missing, and gives every evaluator one outcome."""

    def __init__(
        self,
        due: Sequence[Configured],
        subject: Trace | Conversation,
        asking: Asking,
        *,
        separate: bool,
    ) -> None:
        self._due = due
        self._subject = subject
        self._asking = asking
        self._separate = separate
        self._extraction: Extraction | None = None
        self._preface = ""

    async def outcomes(self, resources: Mapping[Any, object]) -> tuple[Outcome, ...]:
        """One per due evaluator, in order.

        Args:
            resources: Further resources by type; None = there is none of it.
        """
        settled: dict[int, Outcome] = {}
        seats: dict[int, _Seat] = {}
        for at, configured in enumerate(self._due):
            why = self._unexpected(configured.spec, resources)
            if why is None:
                seats[at] = _Seat(configured=configured, questions={})
            else:
                settled[at] = not_applicable(configured, "no_expectation", why)
        await self._extract(seats.values())
        for seat in seats.values():
            self._take_seat(seat, resources)
        await self._judge(list(seats.values()))
        for at, seat in seats.items():
            settled[at] = await self._outcome(seat, resources)
        return tuple(settled[at] for at in range(len(self._due)))

    def _unexpected(self, spec: Spec, resources: Mapping[Any, object]) -> str | None:
        kinds = set(spec.resources.values())
        if Expectation in kinds and resources.get(Expectation) is None:
            return "nothing is expected of this trace"
        if Expected in kinds and isinstance(self._subject, Conversation):
            return None if self._subject.answered else "no output is expected of any turn"
        return None

    async def _extract(self, seats: Iterable[_Seat]) -> None:
        wanting = [seat for seat in seats if Extraction in seat.configured.spec.resources.values()]
        if not wanting:
            return
        question = {EXTRACTION: Extraction.question(self._subject, {})}
        owners = [seat.name for seat in wanting]
        why: Missing = Failure(type="parse_error", message="no extraction")
        for stage in (EXTRACTION, f"{EXTRACTION}_again"):
            answer = await self._asking.ask(stage, question, model=None, owners=owners)
            if isinstance(answer, Failure | Skip):
                why = answer
                if not _is_unreadable(answer):
                    break
                continue
            try:
                self._extraction = to_block(answer[EXTRACTION], Extraction)
            except AnswerError as error:
                why = parse_failure(error)
                self._asking.found_useless(why)
                continue
            self._preface = _told(self._extraction)
            return
        for seat in wanting:
            seat.missing = why

    def _take_seat(self, seat: _Seat, resources: Mapping[Any, object]) -> None:
        """Give the seat what is known, and note what must be asked for."""
        spec = seat.configured.spec
        blocks = {name: kind for name, kind in spec.resources.items() if _is_block(kind)}
        for name, kind in spec.resources.items():
            if kind is Extraction:
                seat.given[name] = self._extraction
            elif kind is Judge:
                seat.given[name] = Line(self._asking, seat.name, seat.configured.model)
            elif kind is Conversation:
                seat.given[name] = self._subject
            elif kind is Expected and isinstance(self._subject, Conversation):
                seat.given[name] = Expected(traces=self._subject.expected)
            elif kind in resources:
                seat.given[name] = resources[kind]
        for name, kind in blocks.items():
            try:
                known = kind.known(self._subject, self._extraction)
            except Exception as error:  # noqa: BLE001 - a third party's block must not end the panel
                seat.missing = failure_of(error)
                return
            if known is not None:
                seat.given[name] = known
            else:
                key = _key(spec.name) if len(blocks) == 1 else f"{_key(spec.name)}__{name}"
                seat.questions[key] = (name, kind)

    # --- asking -------------------------------------------------------------------------------------------------------

    async def _judge(self, seats: Sequence[_Seat]) -> None:
        open_seats = [seat for seat in seats if seat.questions and seat.missing is None]
        for stage, model, group in self._groups(open_seats):
            await self._ask(stage, model, group)
        again: dict[str | None, list[_Seat]] = {}
        for seat in open_seats:
            if seat.questions and _is_unreadable(seat.missing):
                again.setdefault(seat.configured.model, []).append(seat)
        for model, group in again.items():
            await self._ask("judging_again", model, group)

    def _groups(self, seats: Sequence[_Seat]) -> Iterator[tuple[str, str | None, Sequence[_Seat]]]:
        own = [seat for seat in seats if self._separate or seat.configured.model is not None]
        shared = [seat for seat in seats if seat not in own]
        if shared:
            yield "judging", None, shared
        for seat in own:
            yield f"judging_{_key(seat.name)}"[:64], seat.configured.model, [seat]

    async def _ask(self, stage: str, model: str | None, seats: Sequence[_Seat]) -> None:
        questions: dict[str, Question] = {}
        for seat in seats:
            try:
                questions |= self._questions(seat)
            except Exception as error:  # noqa: BLE001 - a third party's block must not end the panel
                seat.missing = failure_of(error)
                seat.questions = {}
        asked = [seat for seat in seats if seat.questions]
        if not questions:
            return
        owners = [seat.name for seat in asked]
        answer = await self._asking.ask(
            stage, questions, model=model, owners=owners, preface=self._preface
        )
        if isinstance(answer, Failure | Skip):
            for seat in asked:
                # An answer that could not be read says more than that asking again failed.
                seat.missing = seat.missing or answer
            return
        if not sum(self._take(seat, answer) for seat in asked):
            nothing = "no entry of the answer could be used"
            self._asking.found_useless(Failure(type="parse_error", message=nothing))

    def _questions(self, seat: _Seat) -> dict[str, Question]:
        options = seat.configured.options
        return {
            key: kind.question(self._subject, options) for key, (_, kind) in seat.questions.items()
        }

    def _take(self, seat: _Seat, answer: Mapping[str, JSON]) -> int:
        """Give the seat its blocks; how many there were that could be used."""
        seat.missing = None
        before = len(seat.questions)
        for key, (name, kind) in list(seat.questions.items()):
            try:
                block = to_block(answer.get(key), kind)
                block.check(self._subject, seat.configured.options)
            except Exception as error:  # noqa: BLE001 - also what a third party's check raises
                seat.missing = parse_failure(error)
            else:
                seat.given[name] = block
                del seat.questions[key]
        return before - len(seat.questions)

    # --- outcomes -----------------------------------------------------------------------------------------------------

    async def _outcome(self, seat: _Seat, resources: Mapping[Any, object]) -> Outcome:
        return self._annotated(seat, await self._settled(seat), resources)

    async def _settled(self, seat: _Seat) -> Outcome:
        configured = seat.configured
        if isinstance(seat.missing, Skip):
            return skipped(configured, seat.missing.reason)
        if seat.missing is not None:
            return failed(configured, seat.missing)
        subject = self._subject
        first = subject.session if isinstance(subject, Conversation) else subject
        try:
            score = configured.spec.function(first, **seat.given, **configured.options)
            if inspect.isawaitable(score):
                score = await score
        except JudgeError as error:
            if error.type in SKIPPED:
                return skipped(configured, error.type)
            return failed(configured, Failure(type=error.type, message=error.message[:500]))
        except Exception as error:  # noqa: BLE001 - one evaluator's fault is its own outcome
            return failed(configured, failure_of(error))
        return settle(configured, score)

    def _annotated(self, seat: _Seat, outcome: Outcome, resources: Mapping[Any, object]) -> Outcome:
        more: dict[str, Any] = {"judge": self._asking.use_of(seat.name)}
        cuts = [outcome.truncated, self._asking.truncated.get(seat.name)]
        more["truncated"] = "; ".join(filter(None, cuts)) or None
        expectation = resources.get(Expectation)
        if isinstance(expectation, Expectation) and _uses(expectation, seat.configured.spec):
            more["expectation"] = expectation.digest
        if isinstance(self._subject, Trace) and outcome.state == "scored":
            facts = span_ids(against(seat.name, self._subject))
            more["evidence"] = tuple(dict.fromkeys([*outcome.evidence, *facts]))
            more["contradiction"] = contradicts(seat.name, outcome.score or 0.0, self._subject)
        return replace(outcome, **more)


def reads_expected(spec: Spec) -> bool:
    """Whether a judge of this evaluator should see what was expected."""
    kinds = spec.resources.values()
    return any(kind is Expected or (_is_block(kind) and kind.reads_expected) for kind in kinds)


def _uses(expectation: Expectation, spec: Spec) -> bool:
    if Expectation in spec.resources.values():
        return True
    return expectation.output is not None and reads_expected(spec)


def _is_block(kind: Any) -> TypeGuard[type[Block]]:
    return inspect.isclass(kind) and issubclass(kind, Block) and kind is not Extraction


def _is_unreadable(missing: object) -> bool:
    """Whether asking again may help: something came back."""
    return isinstance(missing, Failure) and missing.type == "parse_error"


def _key(name: str) -> str:
    # A name of ours has no double underscore, so a third party's `package/name` cannot meet one.
    told = name.replace("/", "__")
    return "".join(char if char.isalnum() or char == "_" else "_" for char in told)


def _told(extraction: Extraction) -> str:
    """A judge wrote it from untrusted text: it stays untrusted, inside the fence."""
    plan = "".join(f"\n{at}. {step}" for at, step in enumerate(extraction.plan, 1)) or " none"
    return (
        "What an earlier reading of this recording found:\n"
        f"task: {extraction.task}\noutcome: {extraction.outcome}\nplan:{plan}\n\n"
    )
