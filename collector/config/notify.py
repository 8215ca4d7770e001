"""Section `notify`: who is notified of alerts without a Prometheus."""

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, SecretStr

from collector.config.section import Section
from collector.config.values import Token, Url, is_url, missing

LiveAlert = Literal[
    "AgentFault", "AgentScoreDrop", "AgentRunaway", "AgentScoresStale", "AgentSignalsNotDelivered"
]
"""The alerts that a process can tell by itself."""
KINDS = ("slack", "teams", "pagerduty", "alertmanager", "webhook")


class NotifyTarget(Section):
    """One of the kinds, and which alerts it is sent."""

    slack: SecretStr | None = None
    teams: SecretStr | None = None
    pagerduty: Token | None = None
    alertmanager: Url | None = None
    webhook: SecretStr | None = None
    secret: Token | None = None
    endpoint: Url | None = None
    only: tuple[LiveAlert, ...] | None = None
    severity: Literal["page", "ticket"] | None = None
    ca_file: Path | None = None
    proxy: SecretStr | None = None

    @property
    def kind(self) -> str:
        return next(each for each in KINDS if getattr(self, each) is not None)

    def conflicts(self, path: str) -> Iterator[str]:
        kinds = [each for each in KINDS if getattr(self, each) is not None]
        if len(kinds) != 1:
            yield f"{path}: expected one of {', '.join(KINDS)}, got {' and '.join(kinds) or 'none'}"
        for name in ("slack", "teams", "webhook", "proxy"):
            url: SecretStr | None = getattr(self, name)
            if url is not None and not is_url(url.get_secret_value()):
                yield f"{path}.{name}: expected a URL such as https://host/path"
        if self.alertmanager is not None and "@" in self.alertmanager:
            yield f"{path}.alertmanager: a URL without user and password"
        if self.secret is not None and self.webhook is None:
            yield f"{path}.secret: only a webhook is signed"
        if self.secret is not None and not _is_key(self.secret.get_secret_value()):
            yield f"{path}.secret: behind whsec_ expected base64"
        if self.endpoint is not None and self.pagerduty is None:
            yield f"{path}.endpoint: only with pagerduty, such as https://events.eu.pagerduty.com"
        yield from missing(f"{path}.ca_file", self.ca_file)


class Notify(Section):
    """See the module."""

    page: Url | None = None
    alerts: tuple[LiveAlert, ...] = get_args(LiveAlert)
    to: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")], NotifyTarget] = {}


def _is_key(secret: str) -> bool:
    try:
        base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return not secret.startswith("whsec_")
    return True
