"""Records as msgpack, a tag (`type`) names the kind of each."""

from typing import Any, TypeVar, get_args

import msgspec

from collector.base.errors import Undecodable, UnknownKind

_T = TypeVar("_T")
_encoder = msgspec.msgpack.Encoder()


class _Tagged(msgspec.Struct):
    type: str


NOT_A_RECORD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises of damaged bytes: its own error not for texts that are not UTF-8, nor for what is too deep."""
_tagged = msgspec.msgpack.Decoder(_Tagged)
_tagged_json = msgspec.json.Decoder(_Tagged)


def encode(record: msgspec.Struct) -> bytes:
    return _encoder.encode(record)


def decode(
    decoder: msgspec.msgpack.Decoder[_T] | msgspec.json.Decoder[_T], value: bytes | msgspec.Raw
) -> _T:
    """A record of one of the decoder's kinds.

    Raises UnknownKind: the record is of another kind: a newer version wrote it. Raises Undecodable: the bytes are not a
    record.
    """
    try:
        return decoder.decode(value)
    except NOT_A_RECORD as error:
        kinds = kinds_of(decoder.type)
        kind = _kind(value) if kinds else None
        if kind is not None and kind not in kinds:
            raise UnknownKind(f"a record of the unknown kind `{kind[:40]}`") from error
        raise Undecodable(str(error)) from error


def kinds_of(*records: Any) -> frozenset[str]:
    members = [member for each in records for member in get_args(each) or (each,)]
    tags = [member.__struct_config__.tag for member in members]
    return frozenset(tag for tag in tags if tag is not None)


def _kind(value: bytes | msgspec.Raw) -> str | None:
    tagged = _tagged_json if bytes(value[:1]) == b"{" else _tagged
    try:
        return tagged.decode(value).type
    except NOT_A_RECORD:
        return None
