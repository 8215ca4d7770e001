"""Whether what Spanwise writes and sends has somewhere to go: the data folder, every sink, the backend of `forward`.

Nothing is left behind: no signal is delivered, no file stays, no notice is sent (that does `spanwise notify --test`).
Prometheus comes to us; there is nothing to try.
"""

from __future__ import annotations

from collector.base.writable import unwritable
from collector.config.tree import Config
from collector.notices.messenger import Messenger
from collector.otlp.client import reachable
from collector.otlp.signal import METRICS_SERVICE, TRACE_SERVICE
from collector.service.sinks import switched_on


async def undeliverable(config: Config) -> list[str]:
    """One line per thing that cannot be written or does not answer.

    Raises:
        ConfigError: an address is not one.
    """
    folder = unwritable(config.data_dir)
    answers = [folder and f"data_dir: {folder}"]
    answers += [await kind.reachable(config) for kind in switched_on(config)]
    if config.forward is not None:  # logs go there too; every backend takes traces
        answers.append(await reachable(config.forward, TRACE_SERVICE, section="forward"))
    if config.metrics.otlp is not None:
        target = config.metrics.otlp
        answers.append(await reachable(target, METRICS_SERVICE, section="metrics.otlp"))
    for name, target in config.notify.to.items():
        messenger = Messenger(name, target)
        answers.append(await messenger.trial())
        await messenger.close()
    return [line for line in answers if line is not None]
