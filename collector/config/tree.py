"""Every setting, typed, with its default: the tree behind `spanwise.yaml`.

Durations are seconds (float) and sizes are bytes (int) once parsed; a file says `500ms 5s 30m 24h` and
`64KiB 64MiB 4GiB`. Unknown keys are errors. How files, environment and `--set` are merged: collector/config/load.py.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, SecretStr

from collector.base.cores import usable_cores
from collector.base.net import exporter_settings
from collector.config.forward import Keep
from collector.config.notify import Notify
from collector.config.redaction_patterns import Key, Patterns
from collector.config.section import Links, Section, Strict
from collector.config.sinks import KafkaSecurity, OtlpTarget, Sinks
from collector.config.values import (
    AttributeKey,
    BasePath,
    Duration,
    Origin,
    Port,
    Servers,
    Share,
    Size,
    Token,
    Url,
)

Role = Literal["receive", "assemble", "score", "judge", "publish"]


class Grpc(Section):
    host: str = "127.0.0.1"
    port: Port = 4317


class Http(Section):
    host: str = "127.0.0.1"
    port: Port = 4318
    paths: tuple[str, ...] = ("/v1/traces", "/api/public/otel/v1/traces")
    cors: tuple[Origin, ...] = ()


class TlsConfig(Section, title="Tls"):
    cert_file: Path
    key_file: Path
    client_ca_file: Path | None = None


class ReceiverConfig(Section, title="Receiver"):
    grpc: Grpc = Grpc()
    http: Http = Http()
    max_request: Size = Field(default=64 << 20, gt=0, le=1 << 30)
    body_timeout: Duration = 60.0
    stop_delay: Annotated[Duration, Field(le=300)] | None = 1.0
    max_score_lag: Annotated[Duration, Field(ge=5)] | None = 30.0
    tls: TlsConfig | None = None
    bearer_tokens: tuple[Token, ...] = ()

    def exporters(self, ports: tuple[int, int] | None = None) -> tuple[str, str]:
        """What an agent's process is given to send here: over gRPC, and over HTTP; `ports`: those that were bound."""
        grpc, http = ports or (self.grpc.port, self.http.port)
        is_tls = self.tls is not None
        return exporter_settings(host=self.grpc.host, grpc=grpc, http=http, tls=is_tls)


class Admin(Section):
    host: str = "127.0.0.1"
    port: Port = 4390
    bearer_tokens: tuple[Token, ...] = ()
    base_path: BasePath = ""


class DiskLogConfig(Section, title="DiskLog"):
    max_size: Size = Field(default=4 << 30, ge=16 << 20)


class KafkaLogConfig(Section, title="KafkaLog"):
    bootstrap_servers: Servers | None = None
    group: str = "spanwise"
    instance: str | None = None
    session_timeout: Duration = Field(default=10.0, le=86_400)
    topic_prefix: str = "spanwise."
    partitions: int = Field(default=12, ge=1, le=10_000)
    replication: int = Field(default=1, ge=1, le=100)
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
    glance: Duration | None = 30.0
    late: Duration = 600.0
    max_revisions: int = Field(default=3, ge=0, le=1_000_000)
    max_spans: int = Field(default=10_000, ge=1, le=10_000_000)
    max_bytes: Size = Field(default=16 << 20, gt=0, le=1 << 30)


class SessionWindow(Section):
    idle: Duration = 1800.0
    max_age: Duration = 86400.0
    max_traces: int = Field(default=1000, ge=1, le=1_000_000)
    max_open: int = Field(default=100_000, ge=1, le=100_000_000)
    memory: Size = Field(default=512 << 20, gt=0)


class AgentWindow(Section):
    sessions: int = Field(default=200, ge=1, le=1_000_000)
    max_age: Duration = 86400.0
    version_silence: Duration = Field(default=900.0, gt=0)
    settle: Duration = 300.0


class Windows(Section):
    trace: TraceWindow = TraceWindow()
    session: SessionWindow = SessionWindow()
    agent: AgentWindow = AgentWindow()
    memory: Size = Field(default=512 << 20, gt=0)


class Price(Section):
    input: float = Field(ge=0, le=1_000_000)
    output: float = Field(ge=0, le=1_000_000)


class BudgetConfig(Section, title="Budget"):
    usd_per_day: float | None = Field(default=None, ge=0, le=1e9)
    calls_per_minute: int = Field(default=60, ge=1, le=1_000_000)


class JudgeMore(Section, title="More"):
    new_version: int | None = Field(default=40, ge=1, le=160)
    drop: int | None = Field(default=40, ge=20, le=160)


class JudgeConfig(Section, title="Judge"):
    model: str | None = None
    base_url: Url | None = None
    api_key: SecretStr | None = None
    timeout: Duration = 30.0
    attempts: int = Field(default=3, ge=1, le=100)
    temperature: float | None = Field(default=0.0, ge=0, le=10)
    max_tokens: int | None = Field(default=4096, ge=16, le=10_000_000)
    calls: Literal["shared", "separate"] = "shared"
    max_prompt: int = Field(default=24_000, ge=1000, le=100_000_000)
    concurrency: int = Field(default=8, ge=1, le=10_000)
    sample: Share = 1.0
    more: JudgeMore | None = JudgeMore()
    max_lag: Duration = 1200.0
    price: Price | None = None
    budget: BudgetConfig = BudgetConfig()
    cache: Size = 256 << 20


class EmbedderConfig(Section):
    kind: Literal["wordllama", "litellm", "none"] = "wordllama"
    model: str | None = None
    base_url: Url | None = None
    api_key: SecretStr | None = None


class EvaluatorConfig(Strict):
    """Settings of one evaluator; what is not named here is an option, checked against the evaluator's signature."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)
    enabled: bool = True
    threshold: float | None = Field(default=None, ge=0, le=1)
    objective: float | None = Field(default=None, gt=0, lt=1)
    timeout: Duration | None = None

    @property
    def options(self) -> dict[str, Any]:
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
    filter: tuple[AttributeKey, ...] = Field(default=(), max_length=8)


class Tasks(Section):
    evaluator: str = "agentic"
    window: int = Field(default=20, ge=1, le=1_000_000)
    read_only: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()


class FeedbackConfig(Section, title="Feedback"):
    max_age: Duration = Field(default=7 * 86_400.0, gt=0)
    labels: dict[str, Literal["positive", "negative", "neutral"]] = {}
    names: tuple[str, ...] | None = None


class EvaluationScale(Section):
    min: float = Field(default=0.0, ge=-1e12, le=1e12)
    max: float = Field(default=1.0, ge=-1e12, le=1e12)


class EvaluationsConfig(Section, title="Evaluations"):
    names: tuple[str, ...] | None = None
    scales: dict[str, EvaluationScale] = {}
    labels: dict[str, Literal["pass", "fail"]] = {}
    thresholds: dict[str, Share] = {}
    objectives: dict[str, Share] = {}
    lower_is_better: tuple[str, ...] = ()
    max_age: Duration = Field(default=7 * 86_400.0, gt=0)

    def conflicts(self, path: str) -> Iterator[str]:
        for name, scale in self.scales.items():
            if not scale.min < scale.max:
                yield f"{path}.scales.{name}: `min` must be below `max`"


class Serve(Section):
    index: Size = Field(default=512 << 20, ge=4 << 20)


class Redaction(Section):
    content: Literal["keep", "drop"] = "keep"
    patterns: Patterns = {}
    key: Key | None = None


class FairnessConfig(Section, title="Fairness"):
    share: float = Field(default=0.5, gt=0, le=1)


class ForwardConfig(OtlpTarget, title="Forward"):
    keep: Keep | None = None


class MetricsTarget(OtlpTarget):
    interval: Duration = Field(default=60.0, ge=1, le=3600)
    temporality: Literal["cumulative", "delta"] = "cumulative"
    families: tuple[str, ...] | None = None


class Metrics(Section):
    otlp: MetricsTarget | None = None


class Slo(Section):
    objective: float | None = Field(default=None, gt=0, lt=1)


class Config(Section):
    """The whole tree. `Config()` runs."""

    roles: tuple[Role, ...] = ("receive", "assemble", "score", "judge", "publish")
    data_dir: Path = Path("spanwise-data")
    drain_on_stop: bool = False
    receiver: ReceiverConfig = ReceiverConfig()
    admin: Admin = Admin()
    log: LogConfig = LogConfig()
    windows: Windows = Windows()
    workers: Annotated[int, Field(ge=0, le=1024)] | Literal["auto"] = "auto"
    judge: JudgeConfig = JudgeConfig()
    embedder: EmbedderConfig = EmbedderConfig()
    evaluators: dict[str, EvaluatorConfig] = {}
    plugins: tuple[str, ...] = ()
    judges: dict[str, OwnJudge] = {}
    expectations: Path | None = None
    attributes: AttributesConfig = AttributesConfig()
    tasks: Tasks = Tasks()
    sinks: Sinks = Sinks()
    serve: Serve = Serve()
    notify: Notify = Notify()
    feedback: FeedbackConfig = FeedbackConfig()
    evaluations: EvaluationsConfig = EvaluationsConfig()
    links: Links = Links()
    metrics: Metrics = Metrics()
    forward: ForwardConfig | None = None
    redaction: Redaction = Redaction()
    fairness: FairnessConfig = FairnessConfig()
    slo: Slo = Slo()

    @property
    def worker_count(self) -> int:
        """Evaluator processes: auto leaves one of the usable cores to the main process."""
        return max(1, usable_cores() - 1) if self.workers == "auto" else self.workers
