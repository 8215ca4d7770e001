"""The key that keeps a session's records in one partition of `traces` and of `sessions`."""

from __future__ import annotations

from collector.errors import Undecodable

_SEPARATOR = b"\0"


def session_key(service: str, session_id: str) -> bytes:
    """The key of a session. Services do not contain the separator, session ids may."""
    return f"{service}\0{session_id}".encode()


def split_session_key(key: bytes) -> tuple[str, str]:
    """Service and session id of a key.

    Raises:
        Undecodable: it is not a session key.
    """
    service, separator, session_id = key.partition(_SEPARATOR)
    if not separator:
        raise Undecodable("the key is not a session key")
    try:
        return service.decode(), session_id.decode()
    except UnicodeDecodeError as error:
        raise Undecodable("the key is not UTF-8") from error


def service_of(key: bytes) -> str:
    """The service of a session key, as a label: readable whatever the bytes are, empty if there is none."""
    return key.partition(_SEPARATOR)[0].decode(errors="replace")


def turn_key(session: bytes, trace_id: str) -> bytes:
    """The key of one trace's state in topic `sessions`."""
    return session + _SEPARATOR + trace_id.encode()


def awaited_key(session: bytes, digest: str) -> bytes:
    """The key in topic `sessions` of a closed session that waits for the verdict on this input digest."""
    return _SEPARATOR.join((session, b"awaited", digest.encode()))
