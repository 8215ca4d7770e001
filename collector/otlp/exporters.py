"""The settings of an agent's exporter: endpoint and protocol, which only go together."""

from __future__ import annotations

from collector.base.net import address, is_loopback


def exporter_settings(*, host: str, grpc: int, http: int, tls: bool) -> tuple[str, str]:
    """The variables for OTLP over gRPC, and for OTLP over HTTP; `host` is the listener's.

    A listener on all addresses is reached on this machine's loopback.
    """
    scheme = "https" if tls else "http"
    name = host if is_loopback(host) else "127.0.0.1"
    grpc_port, http_port = (
        f"OTEL_EXPORTER_OTLP_ENDPOINT={scheme}://{address(name, port)}" for port in (grpc, http)
    )
    return (
        f"{grpc_port} OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
        f"{http_port} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
    )
