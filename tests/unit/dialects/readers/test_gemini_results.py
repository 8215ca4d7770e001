"""Results of Gemini CLI's commands: what was printed, not what differs with every call."""

from evaluators.dialects.readers.gemini_cli import read_result


def printed(pid: int, *more: str) -> dict[str, str]:
    lines = ["<untrusted_context>", "Output: unknown", *more, f"Process Group PGID: {pid}"]
    return {"output": "\n".join([*lines, "</untrusted_context>"])}


def test_the_same_output_is_the_same_result_whatever_process_printed_it() -> None:
    assert read_result(printed(1)) == read_result(printed(2)) == ("Output: unknown", False)


def test_an_exit_code_is_still_seen() -> None:
    assert read_result(printed(1, "Exit Code: 2")) == ("Output: unknown\nExit Code: 2", True)


def test_a_text_without_a_process_stays_as_it_is() -> None:
    assert read_result("<untrusted_context>\nplain") == ("<untrusted_context>\nplain", False)
