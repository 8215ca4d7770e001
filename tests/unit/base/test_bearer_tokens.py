"""Bearer tokens."""

from pydantic import SecretStr

from collector.base.http_server import BearerTokens
from tests.support.table import for_each

BEARER = BearerTokens([SecretStr("one"), SecretStr("zwölf")])


@for_each(
    ("header", "allowed"),
    [
        ("Bearer one", True),
        ("bearer  one ", True),
        ("Bearer zwölf", True),
        ("Bearer onetwo", False),
        ("Bearer on", False),
        ("Bearer ", False),
        ("Basic one", False),
        ("one", False),
        ("", False),
        (None, False),
        ("Bearer \udcff", False),
    ],
)
def test_only_a_known_token_after_the_scheme_is_allowed(header: str | None, allowed: bool) -> None:
    assert (BEARER.sender(header, "10.0.0.1") is not None) is allowed


def test_a_sender_is_its_token() -> None:
    assert BEARER.sender("Bearer one", "10.0.0.1") == BEARER.sender("bearer one", "10.0.0.2")
    assert BEARER.sender("Bearer one", "10.0.0.1") != BEARER.sender("Bearer zwölf", "10.0.0.1")


def test_without_tokens_every_request_is_allowed() -> None:
    open_to_all = BearerTokens([])

    assert not open_to_all.required
    assert open_to_all.sender(None, "10.0.0.1") == "10.0.0.1"
