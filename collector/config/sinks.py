"""Section `sinks`: where signals are sent, and what every other section that sends has in common with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr

from collector.config.section import Section
from collector.config.values import Duration, Endpoint, Servers, Size, Token, Url, is_url, missing


class KafkaSecurity(Section):
    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: str | None = None
    password: SecretStr | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    def conflicts(self, path: str) -> Iterator[str]:
        """What the protocol requires, a certificate without its key, files that are missing."""
        if self.protocol.startswith("SASL"):
            for name in ("sasl_mechanism", "username", "password"):
                if getattr(self, name) is None:
                    yield f"{path}.{name}: required with protocol {self.protocol}"
        if (self.cert_file is None) != (self.key_file is None):
            without = "cert_file" if self.cert_file is None else "key_file"
            yield f"{path}.{without}: a certificate and its key go together"
        for name in ("ca_file", "cert_file", "key_file"):
            yield from missing(f"{path}.{name}", getattr(self, name))


class JsonlSinkConfig(Section, title="JsonlSink"):
    path: Path | None = None
    max_size: Size = Field(default=256 << 20, gt=0)
    keep: int = Field(default=4, ge=0, le=10_000)


class KafkaSinkConfig(Section, title="KafkaSink"):
    bootstrap_servers: Servers
    topic: str = "spanwise.signals"
    security: KafkaSecurity = KafkaSecurity()


class OtlpTarget(Section):
    endpoint: Endpoint
    protocol: Literal["grpc", "http"] = "grpc"
    headers: dict[str, SecretStr] = {}

    def conflicts(self, path: str) -> Iterator[str]:
        """HTTP needs a URL, gRPC takes host:port too."""
        if self.protocol == "http" and "://" not in self.endpoint:
            yield f"{path}.endpoint: with protocol http, expected a URL such as http://host:4318"


class Outlet(Section):
    """What the sinks that write scores into tools have in common."""

    evaluators: tuple[str, ...] | None = None
    wait: Duration = Field(default=600.0, le=86_400)
    explanation: int = Field(default=1000, ge=0, le=10_000)
    ca_file: Path | None = None
    proxy: SecretStr | None = None

    def conflicts(self, path: str) -> Iterator[str]:
        """A file that is missing, a proxy that is not a URL."""
        yield from missing(f"{path}.ca_file", self.ca_file)
        if "@" in str(getattr(self, "endpoint", "")):
            yield f"{path}.endpoint: a URL without user and password; they have settings of their own"
        if self.proxy is not None and not is_url(self.proxy.get_secret_value()):
            yield f"{path}.proxy: expected a URL such as http://proxy:3128"


class PhoenixSinkConfig(Outlet, title="PhoenixSink"):
    endpoint: Url = "http://127.0.0.1:6006"
    api_key: SecretStr | None = None
    project: str = Field(default="default", min_length=1)


class MlflowSinkConfig(Outlet, title="MlflowSink"):
    endpoint: Url = "http://127.0.0.1:5000"
    username: str | None = None
    password: SecretStr | None = None
    token: SecretStr | None = None

    def conflicts(self, path: str) -> Iterator[str]:
        yield from super().conflicts(path)
        if (self.username is None) != (self.password is None):
            without = "username" if self.username is None else "password"
            yield f"{path}.{without}: a user name and a password go together"


class LangfuseSinkConfig(Outlet, title="LangfuseSink"):
    endpoint: Url = "https://cloud.langfuse.com"
    public_key: str = Field(min_length=1)
    secret_key: Token
    environment: str = Field(default="default", pattern=r"^[a-z0-9_-]{1,40}$")


class LangsmithSinkConfig(Outlet, title="LangsmithSink"):
    endpoint: Url = "https://api.smith.langchain.com"
    api_key: Token
    project_id: str = Field(pattern=r"^[0-9a-fA-F-]{32,36}$")
    """A UUID."""


class DatadogSinkConfig(Outlet, title="DatadogSink"):
    site: str = Field(default="datadoghq.com", min_length=1)
    api_key: Token
    ml_app: str | None = None

    @property
    def endpoint(self) -> str:
        """Of the site. A URL is used as it is: a proxy or a test has one."""
        return self.site if "://" in self.site else f"https://api.{self.site}"


class Sinks(Section):
    jsonl: JsonlSinkConfig | None = JsonlSinkConfig()
    kafka: KafkaSinkConfig | None = None
    otlp: OtlpTarget | None = None
    phoenix: PhoenixSinkConfig | None = None
    mlflow: MlflowSinkConfig | None = None
    langfuse: LangfuseSinkConfig | None = None
    langsmith: LangsmithSinkConfig | None = None
    datadog: DatadogSinkConfig | None = None
