"""Spans that another program wrote to the log are redacted when they are read."""

from collector.config.plan import plan_from
from collector.config.tree import Config
from collector.reading.port import ReadJob, reader_settings
from collector.reading.worker import JobRunner
from tests.support.asking import asked, trace_id

SETTINGS = {
    "embedder": {"kind": "none"},
    "redaction": {"patterns": {"email": "email"}, "key": "a secret of ours"},
}


def read(config: Config) -> tuple[str, str]:
    job = ReadJob(
        trace_id=bytes.fromhex(trace_id("jane@example.org")),
        pieces=(asked("jane@example.org", "I am jane@example.org"),),
        closed="root_ended",
    )
    trace = JobRunner(reader_settings(config), plan_from(config)).read(job)
    return trace.session_id, trace.input or ""


def test_a_worker_reads_no_secret() -> None:
    session_id, text = read(Config.model_validate(SETTINGS))

    assert text == "I am [email]"
    assert session_id.startswith("[email]#")


def test_a_worker_process_has_the_key() -> None:
    """Its configuration comes as JSON: with a masked key it would name sessions otherwise than the receiver does."""
    config = Config.model_validate(SETTINGS)

    arrived = Config.model_validate_json(config.model_dump_json())

    assert read(arrived) == read(config)
    assert "a secret of ours" not in str(config.model_dump())
