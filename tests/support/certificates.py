"""Certificates for one test, made with the openssl binary."""

import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key, PEM."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """An authority, a server on 127.0.0.1 and a client that it vouches for, and a stranger that it does not."""

    ca: Pair
    server: Pair
    client: Pair
    stranger: Pair


def make(folder: Path) -> Certificates:
    """Make all of them."""
    ca = _signed_by_itself(folder, "ca")
    return Certificates(
        ca=ca,
        server=_signed(folder, "server", ca),
        client=_signed(folder, "client", ca),
        stranger=_signed_by_itself(folder, "stranger"),
    )


def _signed_by_itself(folder: Path, name: str) -> Pair:
    pair = Pair(cert=folder / f"{name}.pem", key=folder / f"{name}.key")
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(pair.key), "-out", str(pair.cert), "-days", "2", "-subj", f"/CN={name}"),
    )
    return pair


def of_another_name(folder: Path) -> tuple[Pair, Pair]:
    """An authority, and a server that is not on 127.0.0.1."""
    ca = _signed_by_itself(folder, "ca")
    return ca, _signed(folder, "server", ca, "DNS:elsewhere.example")


def _signed(folder: Path, name: str, ca: Pair, names: str = "IP:127.0.0.1,DNS:localhost") -> Pair:
    pair = Pair(cert=folder / f"{name}.pem", key=folder / f"{name}.key")
    wish, extra = folder / f"{name}.csr", folder / f"{name}.ext"
    extra.write_text(f"subjectAltName={names}\n")
    _openssl(
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(pair.key), "-out", str(wish), "-subj", f"/CN={name}"),
    )
    _openssl(
        *("x509", "-req", "-in", str(wish), "-CA", str(ca.cert), "-CAkey", str(ca.key)),
        *("-CAcreateserial", "-out", str(pair.cert), "-days", "2", "-extfile", str(extra)),
    )
    return pair


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=30)
