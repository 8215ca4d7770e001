"""A new sink: its section in the configuration, one file, one line in `collector.service.sinks.SINKS`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import pytest

from collector.config.tree import Config, Section, Sinks
from collector.log.memory import MemoryLog
from collector.log.port import SIGNALS, Commit, Log
from collector.records.signal_batch import Published
from collector.service import sinks
from collector.service.logs import groups
from tests.support.signals import new, signal


class Webhook(Section):
    url: str = "http://127.0.0.1"


class SinksWithWebhook(Sinks):
    webhook: Webhook | None = None


class WithWebhook(Config):
    sinks: Sinks = SinksWithWebhook(webhook=Webhook())


class WebhookSink:
    name: ClassVar[str] = "webhook"

    @classmethod
    def configured(cls, config: Config) -> Self | None:
        section = getattr(config.sinks, cls.name)
        return None if section is None else cls()

    async def deliver(self, signals: Sequence[Published]) -> None:
        pass

    async def close(self, deadline: float) -> None:
        pass


@pytest.fixture
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setattr(sinks, "SINKS", (*sinks.SINKS, WebhookSink))


async def commit_everything(log: Log, group: str) -> None:
    await log.write((), [Commit(group=group, topic=SIGNALS, partition=0, offset=5)])


@pytest.mark.usefixtures("_listed")
async def test_the_log_holds_signals_until_the_new_sink_has_them() -> None:
    config = WithWebhook()
    log = MemoryLog(clock=lambda: 0.0, groups=groups(config))
    await log.write([new(signal(trace=f"t-{number}")) for number in range(5)])
    for group in groups(config)[SIGNALS] - {"sink.webhook"}:
        await commit_everything(log, group)

    reader = log.read("sink.webhook", SIGNALS)
    await reader.poll()
    batch = await reader.poll()

    assert [type(each).__name__ for each in sinks.sinks(config)] == ["JsonlSink", "WebhookSink"]
    assert len(batch.records) == 5


def test_a_section_without_its_line_fails_at_the_start() -> None:
    with pytest.raises(LookupError, match=r"`sinks.webhook` has no sink"):
        groups(WithWebhook())


def test_every_section_has_its_sink() -> None:
    assert {each.name for each in sinks.SINKS} == set(Sinks.model_fields)
