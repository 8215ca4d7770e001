"""Judge calls about one subject: counted, bounded, their cost shared among the evaluators that they served."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluators.judge_use import JudgeUse
from evaluators.judging.answers import AnswerError, read_object
from evaluators.judging.prompt import (
    SKIPPED,
    Answer,
    JudgeClient,
    JudgeError,
    Prompt,
    digest_of,
    harmless,
    instructions,
    make_prompt,
)
from evaluators.judging.quotations import Quotations
from evaluators.judging.transcript import CHARACTERS_PER_TOKEN, Transcript
from evaluators.model import JSON, Failure
from evaluators.resources import Question
from evaluators.run import failure_of

MAX_FAULTS = 4
"""Calls about one subject that may fail or give nothing usable; then no more are made."""

MAX_OWN_CALLS = 4  # calls that a third party's evaluator may make about one subject

AGAIN = "_again"
"""Ends the name of a stage that asks once more, because an answer could not be read."""

LEAST = 500  # tokens of recording that even the longest rubrics leave


@dataclass(frozen=True, slots=True)
class Skip:
    """The judge was not asked, on purpose."""

    reason: str


Missing = Failure | Skip  # why a question has no answer


@dataclass(frozen=True, slots=True)
class _Paid:
    answer: Answer
    owners: tuple[str, ...]


@dataclass
class JudgeCalls:
    """The calls about one subject. A model that fails is not called again; a spent budget ends all calls.

    `render`: the recording within so many tokens. The others: as of `judge_trace`, and of its prompts.
    """

    client: JudgeClient
    render: Callable[[int], Transcript]
    max_prompt: int
    marker: Callable[[], str]
    context: str | None = None

    def __post_init__(self) -> None:
        self._failed_models: dict[str | None, Missing] = {}
        self._stopped: Missing | None = None
        self._faults = 0
        self._paid: list[_Paid] = []
        self.count = 0  # calls made so far
        self.truncated: dict[str, str] = {}
        """By evaluator: what was left out of the recording that it was judged from."""

    async def ask(
        self,
        stage: str,
        questions: Mapping[str, Question],
        *,
        model: str | None,
        owners: Iterable[str],
        usable: Callable[[Mapping[str, JSON]], bool],
        preface: str = "",
    ) -> Mapping[str, JSON] | Missing:
        """The decoded answers by key, as many as there are, or why there are none.

        `usable` says whether anything in them can be used; an answer in which nothing can is kept in no cache.
        """
        stopped = self._stopped or self._failed_models.get(model)
        if stopped is not None:
            return stopped
        names = tuple(owners)
        rest = self.max_prompt - len(instructions(questions)) // CHARACTERS_PER_TOKEN
        rest -= (len(preface) + len(self.context or "")) // CHARACTERS_PER_TOKEN + 60
        recording = self.render(max(rest, LEAST))
        if recording.truncated is not None:
            self.truncated |= dict.fromkeys(names, recording.truncated)

        def read(text: str) -> None:
            if not usable(_entries(text, questions, quotations)):
                raise AnswerError("no entry of the answer could be used")

        marker, shown = self.marker(), preface + recording.text
        quotations = Quotations(harmless(shown, marker), may_quote=stage.endswith(AGAIN))
        prompt = make_prompt(
            stage,
            questions,
            shown,
            marker=marker,
            context=self.context,
            read=read,
        )
        self.count += 1
        try:
            answer = await self.client(prompt, model=model)
        except JudgeError as error:
            return self._refuse(error, model)
        except Exception as error:  # noqa: BLE001 - whatever breaks, every due evaluator has its outcome
            return self._fail(failure_of(error), model=model)
        self._paid.append(_Paid(answer, names))
        try:
            return _entries(answer.text, questions, quotations)
        except ValueError as error:
            return self.count_useless(parse_failure(error))

    async def ask_freely(
        self,
        owner: str,
        model: str | None,
        instructions: str,
        question: str,
        read: Callable[[str], object],
    ) -> str:
        """A third party's own question, answered in free text that `read` reads, or raises ValueError for.

        Raises JudgeError: there is no answer, or the evaluator has asked too often.
        """
        stopped = self._stopped or self._failed_models.get(model)
        if isinstance(stopped, Skip):
            raise JudgeError(type=stopped.reason, message="not asked any more")
        if stopped is not None:
            raise JudgeError(type=stopped.type, message=stopped.message)
        if sum(owner in paid.owners for paid in self._paid) >= MAX_OWN_CALLS:
            raise JudgeError(type="overload", message=f"more than {MAX_OWN_CALLS} calls")
        name = "custom"
        digest = digest_of(name, instructions, question, None)
        prompt = Prompt(
            name=name, system=instructions, user=question, schema=None, digest=digest, read=read
        )
        self.count += 1
        try:
            answer = await self.client(prompt, model=model)
        except JudgeError as error:
            self._refuse(error, model)
            raise
        self._paid.append(_Paid(answer, (owner,)))
        return answer.text

    def _refuse(self, error: JudgeError, model: str | None) -> Missing:
        if error.type in SKIPPED:
            self._stopped = Skip(error.type)
            return self._stopped
        return self._fail(error.failure, model=model)

    def _fail(self, failure: Failure, *, model: str | None) -> Failure:
        self._failed_models[model] = failure
        return self.count_useless(failure)

    def count_useless(self, failure: Failure) -> Failure:
        self._faults += 1
        if self._faults >= MAX_FAULTS:
            self._stopped = failure
        return failure

    @property
    def answers(self) -> Sequence[Answer]:
        return [paid.answer for paid in self._paid]

    def use_of(self, owner: str) -> JudgeUse | None:
        """An evaluator's share of the calls it took part in; None without any."""
        mine = [paid for paid in self._paid if owner in paid.owners]
        if not mine:
            return None
        return JudgeUse(
            model=mine[-1].answer.model,
            calls=len(mine),
            input_tokens=sum(share_of(p.answer.input_tokens, p.owners, owner) for p in mine),
            output_tokens=sum(share_of(p.answer.output_tokens, p.owners, owner) for p in mine),
            cost_usd=added((p.answer.cost_usd, len(p.owners)) for p in mine),
            cached=all(paid.answer.cached for paid in mine),
        )


def added(costs: Iterable[tuple[float | None, int]]) -> float | None:
    """The sum of cost / parts; None when one is not known."""
    total = 0.0
    for cost, parts in costs:
        if cost is None:
            return None
        total += cost / parts
    return total


def _entries(
    text: str, questions: Mapping[str, Question], quotations: Quotations
) -> Mapping[str, JSON]:
    """The answers by key, or, to a question that was asked alone, the one without a key.

    Raises ValueError: the text holds neither.
    """
    fault = AnswerError("no entry that was asked for")
    entries: dict[str, JSON] = {}
    try:
        answer = read_object(text, quotations)
        entries = {key: each for key, each in answer.items() if key in questions}
    except AnswerError as error:
        fault = error
    if entries:
        return entries
    (key, question), *others = questions.items()
    if others or question.read_alone is None:
        raise fault
    return {key: question.read_alone(text, quotations)}


def parse_failure(error: BaseException) -> Failure:
    return Failure(type="parse_error", message=str(error)[:500])


def share_of(tokens: int, owners: Sequence[str], owner: str) -> int:
    """An owner's share of a call's tokens; over the owners the shares sum to all of them."""
    each, rest = divmod(tokens, len(owners))
    return each + (owners.index(owner) < rest)


@dataclass(slots=True)
class JudgeHandle:
    """The `Judge` of one third party's evaluator: free-text calls about one subject."""

    _calls: JudgeCalls
    _owner: str
    _model: str | None
    waits: int = 0  # calls under way

    @property
    def model(self) -> str:
        """Its own model's name; "default" when it is asked of the configured one."""
        return self._model or "default"

    async def ask(
        self, instructions: str, question: str, *, read: Callable[[str], object] = str
    ) -> str:
        """The model's answer; see `evaluators.resources.Judge`. Raises JudgeError: there is none."""
        self.waits += 1
        try:
            return await self._calls.ask_freely(
                self._owner, self._model, instructions, question, read
            )
        finally:
            self.waits -= 1
