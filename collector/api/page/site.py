"""What the pages and the endpoints of a process share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collector.api.about import About
from collector.api.agreement_routes import Agreements
from collector.api.compare import Counted
from collector.api.findings import Findings
from collector.api.index import Index
from collector.api.off_loop import OffLoop
from collector.api.page.rendering import Rendering
from collector.api.query import Query
from collector.api.traces import Traces
from collector.api.vitals import Vitals
from collector.base.clock import Clock
from collector.base.lifecycle import Health
from collector.config.tree import Config
from collector.log.port import Log
from collector.records.standing import AgentLabels, Standings

Verdict = Callable[[Mapping[str, str | None]], dict[str, Any]]
"""The parameters of `/api/v1/compare` in, its verdict out; raises Refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Made once. `standings` belongs to the event loop, as `verdict` and `vitals` do; the index is read off it."""

    config: Config
    log: Log
    index: Index
    query: Query
    traces: Traces
    off_loop: OffLoop
    findings: Findings
    agreements: Agreements
    about: About
    vitals: Vitals
    health: Health
    rendering: Rendering
    standings: Callable[[], Standings]
    verdict: Verdict
    counted: Callable[[AgentLabels, str, str], Counted]
    """What the fault watches counted of a baseline and a candidate."""
    clock: Clock
    ports: Callable[[], tuple[int, int] | None]
    """Where this process takes spans over gRPC and over HTTP, once they are bound."""


@dataclass(frozen=True, slots=True)
class Pages:
    """Some of the pages of a site."""

    site: Site
