"""What `/metrics` answers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder


def exposition(registry: CollectorRegistry, accept: str) -> tuple[bytes, str]:
    """The registry in the format that the `Accept` header asks for, and its content type.

    OpenMetrics carries exemplars, the text format none.
    """
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
