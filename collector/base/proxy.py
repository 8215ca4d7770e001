"""The proxy of the environment, alike for every way out: HTTP_PROXY, HTTPS_PROXY and NO_PROXY, never for loopback."""

from __future__ import annotations

from urllib.request import getproxies_environment, proxy_bypass

from collector.base.net import is_loopback


def proxy_for(host: str, *, tls: bool) -> str | None:
    """The URL of the proxy that leads to `host`; None: it is reached directly."""
    if is_loopback(host) or proxy_bypass(host):
        return None
    found = getproxies_environment().get("https" if tls else "http")
    return found if found is None or "://" in found else f"http://{found}"
