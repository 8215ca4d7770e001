"""The built-in kinds of secrets: e-mail addresses, payment cards, phone numbers, tokens. Pure.

A kind is a pattern that RE2 runs in linear time, and a check in Python of what it found, for what RE2 cannot say:
the check digit, and what is around. Patterns look at bytes; those above 127 count as letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import re2

from collector.config.linear_patterns import linear

End = Callable[[bytes, int, int, int], int | None]
"""Of text, start and stop of what the pattern found, end of the secret before: where it ends; None: it is not one."""


@dataclass(frozen=True, slots=True)
class SecretKind:
    pattern: re2.Pattern
    end: End
    hint: bytes  # a pattern, not bound to what is around, that every secret of the kind and maybe more satisfies
    cost: int = 4  # of one look at what the pattern found, in microseconds, about


def latin(pattern: bytes) -> re2.Pattern:
    """The pattern over single bytes."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    return re2.compile(pattern, options)


def _is_word(text: bytes, at: int) -> bool:
    return 0 <= at < len(text) and (text[at : at + 1].isalnum() or text[at] == 0x5F)


def _is_digit(text: bytes, at: int) -> bool:
    return 0 <= at < len(text) and 0x30 <= text[at] <= 0x39


# --- e-mail ----------------------------------------------------------------------------------------------------------

_ALPHABETS = r"\p{Latin}\p{Cyrillic}\p{Greek}"
"""Not those of scripts without spaces, where words are right beside an address."""
_LETTERS = _ALPHABETS + "0-9"
_EMAIL = rf"[{_LETTERS}._%+-]+(?:@|%40)(?:[{_LETTERS}-]+\.)+[{_ALPHABETS}][{_LETTERS}-]+"
_IMAGE = re.compile(rb"@\dx\.(?:png|jpe?g|gif|webp|svg|avif)\Z", re.IGNORECASE)


def _email_end(text: bytes, start: int, end: int, _before: int) -> int | None:
    return None if _IMAGE.search(text[start:end]) else end


# --- card ------------------------------------------------------------------------------------------------------------

_GAP = rb"(?:[ .+-]|\xc2\xa0|%20| - )"
_CARD = rb"\b(?:%s)\b" % b"|".join(
    (
        rb"[2-6]\d{12,18}",
        rb"[2-6]\d{3}(?:GAP\d{4}){2}GAP\d{1,4}(?:GAP\d{1,3})?",
        rb"[2-6]\d{3}GAP\d{6}GAP\d{4,5}",
        rb"[2-6]\d{5}GAP\d{7,13}",
        rb"[2-6](?:GAP\d){12,18}",
    )
).replace(b"GAP", _GAP)
"""13 to 19 digits as people write them: all in a row, in fours, 4-6-5, 4-6-4, 6-13, one by one."""
_DIGITS = re.compile(rb"\d+")
_GAPS = re.compile(_GAP)
_ISSUERS: Mapping[str, tuple[tuple[int, int, int, int], ...]] = {
    "2": ((2200, 2204, 16, 19), (2221, 2720, 16, 16)),
    "3": (
        (3000, 3059, 14, 19),
        (3095, 3095, 14, 19),
        (3400, 3499, 15, 15),
        (3528, 3589, 16, 19),
        (3600, 3699, 14, 19),
        (3700, 3799, 15, 15),
        (3800, 3999, 14, 19),
    ),
    "4": ((4000, 4999, 13, 19),),
    "5": ((5000, 5099, 13, 19), (5100, 5599, 16, 16), (5600, 5899, 13, 19)),
    "6": ((6000, 6999, 13, 19),),
}
"""By first digit: first four digits from, to; how many digits from, to. As the card networks publish them."""


def is_card(digits: str) -> bool:
    """Whether these are the digits of a payment card: a known issuer, its length, and the check digit (Luhn)."""
    issuers = _ISSUERS.get(digits[:1], ())
    head, length = int(digits[:4] or 0), len(digits)
    if not any(low <= head <= high and few <= length <= many for low, high, few, many in issuers):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _card_end(text: bytes, start: int, end: int, _before: int) -> int | None:
    """A card, without digits behind a gap that belong to something else; no part of a decimal number."""
    if text[start - 1 : start] == b"." and _is_digit(text, start - 2):
        return None
    if text[end : end + 1] == b"." and _is_digit(text, end + 1):
        return None
    while True:
        digits = "".join(
            each.decode() for each in _DIGITS.findall(_GAPS.sub(b" ", text[start:end]))
        )
        if len(digits) < 13:
            return None
        if is_card(digits):
            return end
        gaps = list(_GAPS.finditer(text, start, end))
        if not gaps or len(gaps) == len(digits) - 1:
            return None
        end = gaps[-1].start()


# --- phone -----------------------------------------------------------------------------------------------------------

_S = rb"(?:[ .()/-]|\xc2\xa0)"
_PHONE = b"|".join(
    (
        rb"(?:\+|%2B)S?[1-9](?:S{0,3}\d){7,14}\b",
        rb"\b00[1-9]\d{0,2}S(?:S{0,2}\d){6,12}\b",
        rb"(?:\b1[ .-])?(?:\([2-9]\d{2}\)S{0,2}|\b[2-9]\d{2}[ .-])\d{3}[ .-]\d{4}\b",
        rb"\(?\b0[1-9]\d{0,4}\)?[ ./-]{1,3}(?:\d{4,8}|\d{2,3}[ .-]\d{2,4})(?:[ .-]\d{2,4}){0,3}\b",
    )
).replace(b"S", _S)
"""+49 170 5551234, 0049 170 5551234, (415) 555-2671, 0170 5551234 and 01 42 68 53 00."""
_DATE = re.compile(
    rb"(?:19|20)\d\d[./-](?:0[1-9]|1[0-2])[./-][0-3]\d|[0-3]?\d[./-][0-3]?\d[./-](?:19|20)\d\d(?!\d)"
)
_JOINTS = (b"+", b"-", b".", b"/", b"#")
"""What joins the parts of identifiers."""
_DECIMAL = re.compile(rb"\+?\d+\.\d+\Z|\+?\d{1,3}(?:\.\d{3})+\Z")


def _phone_end(text: bytes, start: int, end: int, before: int) -> int | None:
    """A phone number; no date, no decimal number, no part of an identifier or of a row of numbers."""
    number = text[start:end]
    if (start > before and _is_word(text, start - 1)) or _DATE.search(number):
        return None
    if number.startswith((b"+", b"%2B")):
        return None if text[max(0, start - 1) : start] == b"+" or _DECIMAL.match(number) else end
    groups = _DIGITS.findall(number)
    is_inside = text[max(0, start - 1) : start] in _JOINTS or (
        text[end : end + 1] in _JOINTS and _is_digit(text, end + 1)
    )
    if is_inside or not 9 <= sum(map(len, groups)) <= 15:
        return None
    return None if _is_of_a_row(text, start, end, groups) else end


def _is_of_a_row(text: bytes, start: int, end: int, groups: list[bytes]) -> bool:
    """Whether it may be a part of a row of numbers: only pairs or threes behind spaces, beside other numbers."""
    if all(len(group) == 2 for group in groups):
        if len(groups) != 5:
            return True
    elif not re.fullmatch(rb"[2-9]\d\d \d{3} \d{4}", text[start:end]):
        return False
    left = text[max(0, start - 1) : start] in (b" ", b",", b"\t") and _is_digit(text, start - 2)
    right = text[end : end + 1] in (b" ", b",", b"\t") and _is_digit(text, end + 1)
    return left or right


# --- token -----------------------------------------------------------------------------------------------------------

_WORDS = rb"[A-Za-z0-9_-]"
_PREFIXED = (
    rb"\b(?:sk|pk|rk)[-_]" + _WORDS + rb"{16,}",
    rb"\bgh[pousr]_[A-Za-z0-9]{16,}",
    rb"\bgithub_pat_[A-Za-z0-9_]{16,}",
    rb"\bglpat-" + _WORDS + rb"{16,}",
    rb"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    rb"\bxapp-[A-Za-z0-9-]{10,}",
    rb"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    rb"\bAIza" + _WORDS + rb"{30,}",
    rb"\bhf_[A-Za-z0-9]{20,}",
    rb"\beyJ" + _WORDS + rb"{8,}(?:\." + _WORDS + rb"*){1,4}",
    rb"(?i:\bbearer(?:\s|%20)+)[A-Za-z0-9._~+/=-]{16,}",
)
_BLOCK = (
    rb"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s,:]|-[A-Za-z0-9])*"
    rb"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?"
)
_TOKEN = b"|".join((*_PREFIXED, _BLOCK))
_LONG = 40
"""Characters from which a token may be without a digit."""


def _token_end(text: bytes, start: int, end: int, _before: int) -> int | None:
    found = text[start:end]
    is_one = len(found) >= _LONG or found[:5] == b"-----" or _DIGITS.search(found)
    return end if is_one else None


BUILT_IN: Mapping[str, SecretKind] = {
    "email": SecretKind(
        linear(_EMAIL), _email_end, rb"[A-Za-z0-9._%+\x80-\xff-](?:@|%40)[A-Za-z0-9\x80-\xff-]"
    ),
    "card": SecretKind(
        latin(_CARD),
        _card_end,
        rb"[2-6](?:%s?\d){12}|\x18[\x80-\xff]{5,8}[\x01-\x7f]" % _GAP,
        cost=20,
    ),
    "phone": SecretKind(
        latin(_PHONE),
        _phone_end,
        rb"(?:\+|%2B)(?:S{0,3}\d){8}|0(?:S{0,3}\d){8}|[2-9]\d\dS{1,3}\d{3}S\d{4}".replace(b"S", _S),
        cost=10,
    ),
    "token": SecretKind(
        latin(_TOKEN),
        _token_end,
        rb"(?:sk|pk|rk)[-_]|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|AKIA|ASIA|AIza|hf_|eyJ|PRIVATE KEY"
        rb"|(?i:bearer)(?:\s|%20)",
    ),
}
"""By the name that the configuration gives them. The second hint of a card is one sent as an integer."""
