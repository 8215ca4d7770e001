"""The PromQL of the dashboard: the expressions of the alerts, narrowed to what its reader has chosen. Pure text."""

import re

PROCESS = ("job",)
SERVICE = ("job", "service")
AGENT = ("job", "service", "agent")
"""The variables that narrow a query: as many as its families have labels of that name."""

_SELECTOR = re.compile(r"\b(spanwise_[a-z0-9_]+)(?:\{([^}]*)\})?")


def chosen(expr: str, variables: tuple[str, ...]) -> str:
    """The expression with a matcher for each variable in every selector of our families."""
    matchers = [f'{name}=~"${name}"' for name in variables]

    def narrowed(found: re.Match[str]) -> str:
        family, inside = found.groups()
        return f"{family}{{{','.join([*matchers, *([inside] if inside else [])])}}}"

    return _SELECTOR.sub(narrowed, expr)


def per_minute(counter: str, *labels: str) -> str:
    """What a counter counts in a minute, by these labels."""
    by = f" by ({', '.join(labels)})" if labels else ""
    return f"60 * sum{by} (rate({counter}[$__rate_interval]))"


def events(counter: str) -> str:
    """The same of a counter whose series begin with its first event: 0 while a process runs, else nothing."""
    return f"{per_minute(counter)}\nor\n0 * sum(spanwise_build_info)"


def quantile(share: float, histogram: str, *labels: str, only: str = "") -> str:
    """A quantile of what a histogram has observed lately."""
    by = ", ".join(("le", *labels))
    rate = f"rate({histogram}_bucket{only}[$__rate_interval])"
    return f"histogram_quantile({share:g}, sum by ({by}) ({rate}))"
