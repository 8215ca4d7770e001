"""Every setting, typed, with its default: the tree behind `spanwise.yaml`.

Durations are seconds (float) and sizes are bytes (int) once parsed; a file says `500ms 5s 30m 24h` and
`64KiB 64MiB 4GiB`. Unknown keys are errors. How files, environment and `--set` are merged: collector/config/load.py.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SecretStr,
    WithJsonSchema,
)

_DURATION = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
"""In milliseconds: 5943ms is then exactly 5.943."""
_SIZE = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_duration(value: Any) -> Any:
    """Seconds out of `500ms 5s 30m 24h`; numbers are seconds already."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise ValueError(f'expected a duration such as 500ms, 5s, 30m or 24h, got "{value}"')
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", value.strip())
    if match is None:
        raise ValueError(f'expected a duration such as 500ms, 5s, 30m or 24h, got "{value}"')
    return float(match[1]) * _DURATION[match[2]] / 1000


def parse_size(value: Any) -> Any:
    """Bytes out of `64KiB 64MiB 4GiB`; numbers are bytes already."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f'expected a size such as 64KiB, 64MiB or 4GiB, got "{value}"')
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?", value.strip())
    if match is None:
        raise ValueError(f'expected a size such as 64KiB, 64MiB or 4GiB, got "{value}"')
    return int(float(match[1]) * _SIZE[match[2] or "B"])


def show_duration(seconds: float) -> str:
    """The way a user writes it."""
    for unit in ("h", "m", "s"):
        length = _DURATION[unit] / 1000
        if seconds >= length and seconds % length == 0:
            return f"{int(seconds / length)}{unit}"
    return f"{seconds * 1000:.12g}ms"


def show_size(size: int) -> str:
    """The way a user writes it."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= _SIZE[unit] and size % _SIZE[unit] == 0:
            return f"{size // _SIZE[unit]}{unit}"
    return f"{size}B"


Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(show_duration),
    Field(gt=0),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": r"^\d+(\.\d+)?(ms|s|m|h|d)$"}, {"type": "number"}]}
    ),
]
Size = Annotated[
    int,
    BeforeValidator(parse_size),
    PlainSerializer(show_size),
    Field(ge=0),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d+(\.\d+)?\s*(B|KiB|MiB|GiB|TiB)?$"},
                {"type": "integer", "minimum": 0},
            ]
        }
    ),
]
Port = Annotated[int, Field(ge=0, le=65535)]
Token = Annotated[SecretStr, Field(min_length=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Role = Literal["receive", "assemble", "score", "judge", "publish"]


class Section(BaseModel):
    """One level of the tree: unknown keys are errors, values never change after start."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )


class Grpc(Section):
    host: str = "127.0.0.1"
    port: Port = 4317


class Http(Section):
    host: str = "127.0.0.1"
    port: Port = 4318
    paths: tuple[str, ...] = ("/v1/traces",)


class TlsConfig(Section, title="Tls"):
    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None


class ReceiverConfig(Section, title="Receiver"):
    grpc: Grpc = Grpc()
    http: Http = Http()
    max_request: Size = Field(default=64 << 20, gt=0)
    body_timeout: Duration = 60.0
    tls: TlsConfig | None = None
    bearer_tokens: tuple[Token, ...] = ()


class Admin(Section):
    host: str = "127.0.0.1"
    port: Port = 4390
    bearer_tokens: tuple[Token, ...] = ()


class KafkaSecurity(Section):
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


class DiskLogConfig(Section, title="DiskLog"):
    max_size: Size = Field(default=4 << 30, ge=16 << 20)


class KafkaLogConfig(Section, title="KafkaLog"):
    bootstrap_servers: str | None = None
    group: str = "spanwise"
    instance: str | None = None
    session_timeout: Duration = 10.0
    topic_prefix: str = "spanwise."
    partitions: int = Field(default=12, ge=1)
    replication: int = Field(default=1, ge=1)
    security: KafkaSecurity = KafkaSecurity()


class LogConfig(Section):
    kind: Literal["disk", "kafka", "memory"] = "disk"
    disk: DiskLogConfig = DiskLogConfig()
    kafka: KafkaLogConfig = KafkaLogConfig()


class TraceWindow(Section):
    root_grace: Duration = 6.0
    local_root_grace: Duration = 30.0
    idle: Duration = 300.0
    max_age: Duration = 3600.0
    late: Duration = 600.0
    max_revisions: int = Field(default=3, ge=0)
    max_spans: int = Field(default=10_000, ge=1)
    max_bytes: Size = Field(default=16 << 20, gt=0)


class SessionWindow(Section):
    idle: Duration = 1800.0
    max_age: Duration = 86400.0
    max_traces: int = Field(default=1000, ge=1)
    max_open: int = Field(default=100_000, ge=1)


class AgentWindow(Section):
    sessions: int = Field(default=200, ge=1)
    max_age: Duration = 86400.0


class Windows(Section):
    trace: TraceWindow = TraceWindow()
    session: SessionWindow = SessionWindow()
    agent: AgentWindow = AgentWindow()
    memory: Size = Field(default=512 << 20, gt=0)


class Price(Section):
    input: float = Field(ge=0)
    output: float = Field(ge=0)


class BudgetConfig(Section, title="Budget"):
    usd_per_day: float | None = Field(default=None, ge=0)
    calls_per_minute: int = Field(default=60, ge=1)


class JudgeConfig(Section, title="Judge"):
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    timeout: Duration = 30.0
    attempts: int = Field(default=3, ge=1)
    temperature: float = Field(default=0.0, ge=0)
    calls: Literal["shared", "separate"] = "shared"
    max_prompt: int = Field(default=24_000, ge=1000)
    concurrency: int = Field(default=8, ge=1)
    sample: Share = 1.0
    max_lag: Duration = 1200.0
    price: Price | None = None
    budget: BudgetConfig = BudgetConfig()
    cache: Size = 256 << 20


class EmbedderConfig(Section):
    kind: Literal["wordllama", "litellm", "none"] = "wordllama"
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None


class EvaluatorConfig(BaseModel):
    """Settings of one evaluator; what is not named here is an option, checked against the evaluator's signature."""

    model_config = ConfigDict(extra="allow", frozen=True)
    enabled: bool = True
    threshold: float | None = Field(default=None, ge=0, le=1)
    objective: float | None = Field(default=None, gt=0, lt=1)

    @property
    def options(self) -> dict[str, Any]:
        """Everything that is not a setting of its own."""
        return dict(self.model_extra or {})


class OwnJudge(Section):
    rubric: str
    scope: Literal["trace", "session"] = "trace"
    threshold: Share = 0.5
    version: str | None = None


class AttributesConfig(Section, title="Attributes"):
    session: tuple[str, ...] = ()
    task: tuple[str, ...] = ("spanwise.task.id",)
    user: tuple[str, ...] = ()


class Tasks(Section):
    evaluator: str = "agentic"
    window: int = Field(default=20, ge=1)


class JsonlSinkConfig(Section, title="JsonlSink"):
    path: Path | None = None
    max_size: Size = Field(default=256 << 20, gt=0)
    keep: int = Field(default=4, ge=0)


class KafkaSinkConfig(Section, title="KafkaSink"):
    bootstrap_servers: str
    topic: str = "spanwise.signals"
    security: KafkaSecurity = KafkaSecurity()


class OtlpTarget(Section):
    endpoint: str
    protocol: Literal["grpc", "http"] = "grpc"
    headers: dict[str, SecretStr] = {}


class Sinks(Section):
    jsonl: JsonlSinkConfig | None = JsonlSinkConfig()
    kafka: KafkaSinkConfig | None = None
    otlp: OtlpTarget | None = None


class Serve(Section):
    index: Size = Field(default=512 << 20, ge=4 << 20)


class Redaction(Section):
    content: Literal["keep", "drop"] = "keep"


class FairnessConfig(Section, title="Fairness"):
    share: float = Field(default=0.5, gt=0, le=1)


class Slo(Section):
    objective: float = Field(default=0.9, gt=0, lt=1)


class Config(Section):
    """The whole tree. `Config()` runs."""

    roles: tuple[Role, ...] = ("receive", "assemble", "score", "judge", "publish")
    data_dir: Path = Path("spanwise-data")
    drain_on_stop: bool = False
    receiver: ReceiverConfig = ReceiverConfig()
    admin: Admin = Admin()
    log: LogConfig = LogConfig()
    windows: Windows = Windows()
    workers: Annotated[int, Field(ge=0)] | Literal["auto"] = "auto"
    judge: JudgeConfig = JudgeConfig()
    embedder: EmbedderConfig = EmbedderConfig()
    evaluators: dict[str, EvaluatorConfig] = {}
    judges: dict[str, OwnJudge] = {}
    expectations: Path | None = None
    attributes: AttributesConfig = AttributesConfig()
    tasks: Tasks = Tasks()
    sinks: Sinks = Sinks()
    serve: Serve = Serve()
    forward: OtlpTarget | None = None
    redaction: Redaction = Redaction()
    fairness: FairnessConfig = FairnessConfig()
    slo: Slo = Slo()

    @property
    def worker_count(self) -> int:
        """Evaluator processes: auto leaves one core to the main process."""
        return max(1, (os.cpu_count() or 2) - 1) if self.workers == "auto" else self.workers
