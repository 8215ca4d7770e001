"""How a case of each kind of golden file is checked: (input, expected, quirk)."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.golden.checks import cogitator, connexity, fairforge, pandaprobe, pandaprobe_judged

Check = Callable[[Any, Any, str | None], None]

CHECKS: Mapping[str, Check] = {
    "cogitator_aggregate": cogitator.aggregate,
    "cogitator_custom_metric": cogitator.custom_metric,
    "cogitator_json_schema": cogitator.json_schema,
    "cogitator_judge_parsing": cogitator.judge_parsing,
    "cogitator_percentile": cogitator.percentile,
    "cogitator_regex": cogitator.regex,
    "cogitator_statistical": cogitator.statistical,
    "cogitator_string_match": cogitator.string_match,
    "connexity_registry": connexity.registry,
    "connexity_verdict": connexity.verdict,
    "connexity_weights": connexity.weights,
    "fairforge_conversation": fairforge.conversation,
    "fairforge_pass_k_bayesian": fairforge.bayesian,
    "fairforge_pass_k_frequentist": fairforge.frequentist,
    "fairforge_tool_correctness": fairforge.tool_correctness,
    "pandaprobe_argument_correctness": pandaprobe_judged.argument_correctness,
    "pandaprobe_coherence": pandaprobe.coherence,
    "pandaprobe_judge_metrics": pandaprobe_judged.judge_metrics,
    "pandaprobe_judge_response_parsing": pandaprobe_judged.response_parsing,
    "pandaprobe_loop_detection": pandaprobe.loop_detection,
    "pandaprobe_session_metrics": pandaprobe.session_metrics,
}
