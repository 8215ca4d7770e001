"""TLS files, read and checked once at start."""

import ssl
from dataclasses import dataclass
from pathlib import Path

from collector.base.errors import ConfigError
from collector.config.tree import TlsConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What both servers present, and whom they believe."""

    cert: bytes
    key: bytes
    client_ca: bytes | None  # set = only clients with a certificate of this authority are served
    context: ssl.SSLContext


def load(settings: TlsConfig | None) -> Tls | None:
    """Read the files. Raises ConfigError: a file is missing or is not what it should be."""
    if settings is None:
        return None
    return Tls(
        cert=_read(settings.cert_file, "cert_file"),
        key=_read(settings.key_file, "key_file"),
        client_ca=_read(settings.client_ca_file, "client_ca_file")
        if settings.client_ca_file
        else None,
        context=_context(settings),
    )


def _read(path: Path, key: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"receiver.tls.{key}: cannot read `{path}`: {error.strerror}; name a readable PEM file"
        ) from error


def _context(settings: TlsConfig) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(settings.cert_file, settings.key_file, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"receiver.tls: `{settings.cert_file}` and `{settings.key_file}` are not a certificate and its"
            " unencrypted key; name matching PEM files"
        ) from error
    if settings.client_ca_file is not None:
        try:
            context.load_verify_locations(settings.client_ca_file)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(
                f"receiver.tls.client_ca_file: `{settings.client_ca_file}` holds no certificate; name a PEM file"
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context
