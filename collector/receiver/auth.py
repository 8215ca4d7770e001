"""Bearer tokens."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from pydantic import SecretStr


class Bearer:
    """The tokens that are accepted; none = no authentication."""

    def __init__(self, tokens: Iterable[SecretStr]) -> None:
        self._tokens = [token.get_secret_value().encode() for token in tokens]

    @property
    def required(self) -> bool:
        """Whether a token is needed at all."""
        return bool(self._tokens)

    def allows(self, authorization: str | None) -> bool:
        """Whether the value of an `Authorization` header holds a valid token; takes as long for every wrong one."""
        if not self._tokens:
            return True
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip().encode(errors="surrogateescape")
        matches = [hmac.compare_digest(given, known) for known in self._tokens]
        return scheme.lower() == "bearer" and any(matches)
