"""What is counted of forwarding."""

from typing import Literal, get_args

from collector.base.telemetry import Telemetry

Result = Literal[
    "forwarded", "partial", "retried", "halved", "returned", "refused", "failed", "expired"
]
RESULTS: tuple[Result, ...] = get_args(Result)
"""forwarded: taken; partial: taken without some items; retried: one more try; halved: refused whole, now two requests;
returned: held what was forwarded within the last minute, which is left out; refused: never taken, which is a loss;
failed: the backend failed on it again and again while it took others, which is a loss; expired: records that the log
dropped before they were forwarded, which is a loss too."""


class ForwardFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        self.requests = telemetry.counter(
            "forward_requests",
            "Requests to the backend under `forward`, by what became of them.",
            "result",
        )
        self.traces = telemetry.counter(
            "forward_traces",
            "Traces under `forward.keep`: `kept`, `dropped`, or `lost`, each by reason.",
            "result reason",
        )
        self.spans = telemetry.counter(
            "forward_spans",
            "Spans for the backend under `forward`: `sent`, or `lost` for good.",
            "result",
        )
