"""Reading a judge's answer: tolerant of text around it, strict about its content."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from evaluators.formulas.distribution import clamp
from evaluators.judging.prompt import THINKING
from evaluators.judging.quotations import Quotations
from evaluators.matching.json_values import list_of, object_of, parse_json
from evaluators.matching.text import text_of
from evaluators.model import JSON
from evaluators.resources import Block

B = TypeVar("B", bound=Block)

_OPENING = re.compile(rf"<({THINKING})\b[^<>]*>", re.IGNORECASE)
_CLOSING = re.compile(rf"</({THINKING})\s*>", re.IGNORECASE)
_BEGINS = re.compile(r"\{\s*\"")
_NUMERIC = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
# After the fence there may be a word, but no further object.
_FENCE = re.compile(r"^```[^\n]*\n(.*)```[^{`]*$", re.DOTALL)


class AnswerError(ValueError):
    """The judge's text holds no answer, or more than one, or one that breaks its schema."""


def to_block(value: JSON, kind: type[B]) -> B:
    """A decoded answer as a block; numbers may come as text, nothing else is coerced.

    Raises AnswerError: a field is missing, of a wrong type or out of range, or a number is not finite.
    """
    try:
        block = _block(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise AnswerError(str(error)) from error
    _check(msgspec.to_builtins(block))
    return block


def _block(value: JSON, kind: type[B]) -> B:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_with_numbers(value), kind, strict=False)
        except msgspec.ValidationError:
            raise error from None


def _with_numbers(value: JSON) -> JSON:
    """Texts such as `.5` or ` 0.5 ` as numbers, which msgspec reads only as JSON writes them."""
    inner, items = object_of(value), list_of(value)
    if inner is not None:
        return {key: _with_numbers(each) for key, each in inner.items()}
    if items is not None:
        return [_with_numbers(each) for each in items]
    is_number = isinstance(value, str) and _NUMERIC.fullmatch(value.strip())
    return float(value) if is_number else value


def _check(value: JSON) -> None:
    """Refuse what the standard library's JSON reads and JSON forbids: NaN, infinity, half a surrogate pair."""
    if isinstance(value, float) and not math.isfinite(value):
        raise AnswerError("a number is not finite")
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        raise AnswerError("a text is not Unicode")
    inner = object_of(value)
    for each in inner.values() if inner is not None else list_of(value) or ():
        _check(each)


NOTHING_QUOTED = Quotations()


def read_object(raw: str, quotations: Quotations = NOTHING_QUOTED) -> dict[str, JSON]:
    """The one JSON object of the text, whatever prose, code fence or thinking is around it.

    Beside prose, an object that is in the recording is a quotation and no answer. Raises AnswerError: there is none, or
    several, or it was cut off.
    """
    # What is JSON as it is may speak of thinking tags; anything else may think aloud first.
    whole = _json(_unfenced(raw))
    text = _bare(raw)
    if whole is _NOT_JSON:
        whole = _json(text)
    if whole is not _NOT_JSON:
        known = object_of(whole)
        if known is None:
            raise AnswerError("the answer is JSON, but no object")
        return known
    found = list(_objects(text, quotations))
    own = quotations.own(found)
    if len(own) == 1 and (len(found) == 1 or quotations.may_quote):
        return own[0]
    raise AnswerError(f"the answer holds {len(found)} JSON objects, {len(own)} of its own")


def _bare(raw: str) -> str:
    """The text after the thoughts that it begins with; thoughts that never end hold no answer."""
    text = raw.strip()
    opened = _OPENING.match(text)
    closed = _CLOSING.search(text)
    while opened and closed and closed[1].lower() != opened[1].lower():
        closed = _CLOSING.search(text, closed.end())
    if closed and (opened or _closes_what_a_template_opened(text, closed)):
        text = text[closed.end() :]
    ended = max((each.end() for each in _CLOSING.finditer(text)), default=0)
    unended = _OPENING.search(text, ended)
    return _unfenced(text[: unended.start()] if unended else text)


def _closes_what_a_template_opened(text: str, closed: re.Match[str]) -> bool:
    """Whether a tag without its opening one ends thoughts, rather than being in a text of the answer."""
    if _OPENING.search(text, 0, closed.start()):
        return False
    answer = _BEGINS.search(text, 0, closed.start())
    return answer is None or _json(_unfenced(text[closed.end() :])) is not _NOT_JSON


def _unfenced(text: str) -> str:
    text = text.strip().lstrip("\ufeff").strip()
    fenced = _FENCE.match(text)
    return fenced.group(1).strip() if fenced else text


_NOT_JSON = object()


def _json(text: str) -> JSON:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _objects(text: str, quotations: Quotations) -> Iterator[tuple[str, dict[str, JSON]]]:
    """Every outermost JSON object in a text, with its own text.

    Raises AnswerError: one begins and is broken: what is inside it is not the answer.
    """
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            if _BEGINS.match(text, start) and not quotations.begins(text[start:]):
                raise AnswerError("a JSON object is broken or cut off") from error
            end = start + 1
        else:
            yield text[start:end], value
        start = text.find("{", end)


# --- Cogitator's judges: {score, reasoning}, or a score in prose ----------------------------------------------------


_VALUE = r"(0(?:\.\d+)?|1(?:\.0+)?)(?:/1(?:\.0+)?)?(?![\w%/]|[.,]\d)"
_LABELLED = re.compile(
    rf"\b(?:score|overall|rating|verdict)\b[^\w\n-]*(?:(?:is|of|=)\s+)?{_VALUE}",
    re.IGNORECASE | re.ASCII,
)
_LEADING = re.compile(rf"^{_VALUE}", re.ASCII)
_NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*%?(?:/\d+)?", re.ASCII)
_SCALE = re.compile(r"(?:\bout of |/)1(?:\.0+)?(?![\w/]|[.,]\d)", re.IGNORECASE | re.ASCII)


def read_rating(raw: str, quotations: Quotations = NOTHING_QUOTED) -> JSON:
    """`score` and `reasoning` as Cogitator reads them: from JSON, else a labelled, leading or only number in prose.

    A JSON object's score is clamped to [0, 1]. Its reference takes the first 0 or 1 of any prose; we do not. Raises
    AnswerError: there is no such score, or more than one could be meant, or an object is broken.
    """
    text = _bare(raw)
    value = _json(text)
    # A bare number is JSON without a score, unless something that is not JSON is around it.
    if object_of(value) is not None or _json(raw) is not _NOT_JSON:
        return _rating(value)
    if "{" in text:
        return _rating(read_object(raw, quotations))
    return {"score": _in_prose(text, quotations), "reasoning": None}


def _rating(value: JSON) -> JSON:
    fields = object_of(value) or {}
    score, reasoning = fields.get("score"), fields.get("reasoning")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise AnswerError("the answer is JSON without a numeric score")
    return {
        "score": clamp(float(score)),
        "reasoning": None if reasoning is None else text_of(reasoning),
    }


def _in_prose(text: str, quotations: Quotations) -> float:
    labelled = [(each.group(), float(each[1])) for each in _LABELLED.finditer(text)]
    if labelled:
        return _meant(text, labelled, quotations)
    leading = _LEADING.match(text)
    if leading:
        return float(leading.group(1))
    numbers = _NUMBER.findall(_SCALE.sub("", text))
    if len(numbers) == 1 and re.fullmatch(r"0(?:\.\d+)?|1(?:\.0+)?", numbers[0], re.ASCII):
        alone = re.search(rf"(?<![\w.]){re.escape(numbers[0])}(?!\w)", text, re.ASCII)
        if alone:
            return float(numbers[0])
    raise AnswerError("no labelled score from 0 to 1")


def _meant(text: str, labelled: Sequence[tuple[str, float]], quotations: Quotations) -> float:
    if len(labelled) == 1 and labelled[0][0] == text:
        return labelled[0][1]
    own = quotations.own(labelled)
    if own and len({*own}) == 1 and (len(own) == len(labelled) or quotations.may_quote):
        return own[0]
    raise AnswerError(f"the answer names {len(labelled)} scores, {len(own)} of its own")
