"""Only the members used; google-re2 has no types."""

class error(Exception): ...  # noqa: N801

class Options:
    class Encoding:
        UTF8: Options.Encoding
        LATIN1: Options.Encoding

    encoding: Options.Encoding
    log_errors: bool
    max_mem: int

class Match:
    def start(self, group: int = 0) -> int: ...
    def end(self, group: int = 0) -> int: ...
    def span(self, group: int = 0) -> tuple[int, int]: ...

class Pattern:
    def search(
        self, text: bytes, pos: int | None = None, endpos: int | None = None
    ) -> Match | None: ...

def compile(  # noqa: A001
    pattern: str | bytes, options: Options | None = None
) -> Pattern: ...
