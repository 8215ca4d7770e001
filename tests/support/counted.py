"""What a service counted."""

from collector.base.telemetry import Telemetry


def counted(telemetry: Telemetry, name: str, **labels: str) -> float:
    """The value of metric `spanwise_<name>` with these labels; 0: it has none."""
    return telemetry.registry.get_sample_value(f"spanwise_{name}", labels) or 0.0
