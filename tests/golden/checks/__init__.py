"""How a case of each kind of golden file is checked: (input, expected, quirk)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.golden.checks import cogitator, pandaprobe

Check = Callable[[Any, Any, str | None], None]

CHECKS: Mapping[str, Check] = {
    "cogitator_aggregate": cogitator.aggregate,
    "cogitator_percentile": cogitator.percentile,
    "cogitator_statistical": cogitator.statistical,
    "pandaprobe_coherence": pandaprobe.coherence,
    "pandaprobe_loop_detection": pandaprobe.loop_detection,
    "pandaprobe_session_metrics": pandaprobe.session_metrics,
}
