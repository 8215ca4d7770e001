"""Every error that Spanwise raises itself.

SpanwiseError
+-- ConfigError          a human must act; the message ends with what to do. One line on stderr, exit 1 or 2
|   +-- DataFolderInUse  another process holds the data folder
|   +-- DataDamaged      a file of the data folder is cut off or overwritten
+-- Retryable            may pass; the caller tries again later
|   +-- LogFull          a topic's share of the disk is used up
|   +-- LogUnavailable   the log cannot be reached or written to now
+-- Permanent            never passes; count it, name it, go on
+-- RecordTooLarge   a record above what the log takes
+-- TooLarge         a request above a limit of one request: its bytes, fields, spans or traces
+-- Undecodable      bytes that are not what they should be
    +-- UnknownKind  a record that a newer version wrote
"""


class SpanwiseError(Exception):
    """The root of the tree above."""


class ConfigError(SpanwiseError):
    """A mistake of the user's; the message ends with what to do."""


class DataFolderInUse(ConfigError):
    """Another process holds the data folder."""


class DataDamaged(ConfigError):
    """A file of the data folder is cut off or overwritten."""


class Retryable(SpanwiseError):
    """May pass by itself. `after`: seconds that the other side asks us to wait."""

    def __init__(self, message: object = "", *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class RequestFailed(Retryable):
    """The other side answers, and failed on this request: it may do so on this one alone."""


class LogFull(Retryable):
    """The topic's share of the log is used up."""


class LogUnavailable(Retryable):
    """The log cannot be written to now."""


class Permanent(SpanwiseError):
    """Will never pass."""


class RecordTooLarge(Permanent):
    """A record above what the log takes."""


class TooLarge(Permanent):
    """A request above a limit of one request: its bytes, also after decompression, its fields, spans or traces.

    `items`: how many spans were seen until then; they count as refused for it.
    """

    def __init__(self, message: str, *, items: int = 1) -> None:
        super().__init__(message)
        self.items = max(1, items)


class Undecodable(Permanent):
    """Bytes that are not what they should be."""


class UnknownKind(Undecodable):
    """A record of a kind that this version does not know: a newer version wrote it."""
