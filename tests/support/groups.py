"""The groups of costly tests, and the files that each guards (`guarded.py`)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Tests, as files or `file::name`, and the files that they alone guard, as patterns below the root.

    The files of the tests are guarded too.
    """

    tests: Sequence[str]
    guards: Sequence[str]

    def has(self, test: str) -> bool:
        """Whether a test of this id is one of the group's."""
        file, _, name = test.partition("::")
        names = (file, f"{file}::{name.partition('[')[0]}")
        return any(each in names for each in self.tests)

    def digest(self, root: Path = ROOT) -> str:
        """Of the names and contents of all guarded files."""
        found = hashlib.sha256()
        for file in sorted(file for each in self.patterns for file in matching(each, root)):
            content = hashlib.sha256(file.read_bytes()).hexdigest()
            found.update(f"{file.relative_to(root)} {content}\n".encode())
        return found.hexdigest()

    @property
    def patterns(self) -> set[str]:
        return {*self.guards, *(each.partition("::")[0] for each in self.tests)}


def matching(pattern: str, root: Path = ROOT) -> list[Path]:
    """The source files of a pattern."""
    found = root.glob(pattern)
    return [each for each in found if each.is_file() and "__pycache__" not in each.parts]


def files(folder: str) -> list[str]:
    """All files of tests of a folder."""
    return [str(each.relative_to(ROOT)) for each in sorted((ROOT / folder).glob("test_*.py"))]


GROUPS: Mapping[str, Group] = {
    "image": Group(
        tests=["tests/e2e/test_image.py"],
        guards=[
            *("Dockerfile", ".dockerignore", "compose.yaml", "pyproject.toml", "locks/*.lock"),
            *("scripts/warm.py", "collector/commands/healthcheck.py", "tests/support/image/*.py"),
        ],
    ),
    "release": Group(
        tests=["tests/e2e/test_release.py"],
        guards=[
            *("Makefile", "pyproject.toml", "locks/*.lock", "scripts/release.py"),
            "helm/spanwise/Chart.yaml",
        ],
    ),
    "frameworks": Group(
        tests=[
            "tests/e2e/test_external_evaluators.py",
            "tests/e2e/test_framework_pages.py::test_what_a_page_says_connects_its_framework",
        ],
        guards=[
            *("docs/frameworks/**/*", "scripts/frameworks.py", "tests/support/frameworks/**/*"),
            *("tests/support/tools/frameworks*.txt", "evaluators/dialects/**/*.py"),
            *("docs/external-evaluators.md", "tests/support/evaluators/**/*"),
            *("tests/support/tools/evaluators.txt", "tests/support/tools/promptfoo/*"),
            "collector/receiver/feedback/evaluation.py",
        ],
    ),
    "kafka": Group(
        tests=[
            "tests/e2e/test_kafka_fleet.py",
            "tests/e2e/test_kafka_outage.py::test_a_short_outage_under_load",
            "tests/e2e/test_rolling_update.py",
        ],
        guards=[
            *("collector/log/**/*.py", "collector/assembly/**/*.py", "collector/service/**/*.py"),
            *("collector/sinks/delivery.py", "tests/support/fleet.py", "tests/support/kafka/*"),
        ],
    ),
    "bench": Group(
        tests=[
            "tests/bench/test_assembly_memory.py",
            "tests/bench/test_forward_cost.py",
            "tests/bench/test_glance_cost.py",
            "tests/bench/test_index_cost.py",
            "tests/bench/test_log_record_cost.py",
            "tests/bench/test_many_turns.py",
            "tests/bench/test_offline_memory.py",
            "tests/bench/test_ratios.py",
            "tests/bench/test_read_trace_bench.py",
            "tests/bench/test_score_cost.py",
            "tests/bench/test_session_memory_bench.py",
            "tests/bench/test_session_update.py",
            "tests/bench/test_signal_cost.py",
        ],
        guards=[
            *("collector/receiver/**/*.py", "collector/otlp/**/*.py", "collector/log/disk/*.py"),
            *("collector/log/embedded/**/*.py", "collector/assembly/**/*.py"),
            *("collector/reading/**/*.py", "collector/scoring/**/*.py", "collector/records/*.py"),
            *("collector/api/*.py", "evaluators/dialects/**/*.py", "tests/bench/*.py"),
        ],
    ),
    "brokers": Group(
        tests=[
            "tests/conformance/log/test_kafka_faults.py",
            "tests/conformance/log/test_kafka_lag.py",
            "tests/conformance/log/test_kafka_log.py",
            "tests/conformance/test_kafka_security.py",
            "tests/conformance/test_sink_kafka.py",
            "tests/e2e/test_compose.py::test_a_score_reaches_the_broker",
            "tests/e2e/test_kafka_collector.py",
            "tests/e2e/test_kafka_collector_logs.py",
            "tests/e2e/test_kafka_forwarding.py",
            "tests/e2e/test_kafka_judge.py",
            "tests/e2e/test_kafka_outage.py::test_a_stop_while_the_broker_is_away_keeps_its_deadline",
            "tests/e2e/test_sinks_live.py",
        ],
        guards=[
            *("collector/log/**/*.py", "collector/sinks/*.py", "collector/forward/*.py"),
            *("collector/judging/*.py", "collector/service/*.py", "collector/config/*.py"),
            *("collector/otlp/*.py", "collector/assembly/**/*.py", "collector/records/*.py"),
            *("tests/support/kafka/*", "tests/support/*contract.py", "locks/requirements.lock"),
            *("compose.yaml", "Dockerfile", "tests/support/fleet.py"),
        ],
    ),
    "judge": Group(
        tests=[
            "tests/conformance/test_judge_fails_in_a_drop.py",
            "tests/e2e/test_evaluate.py",
            "tests/e2e/test_hosted_embeddings.py",
            "tests/e2e/test_judge.py",
            "tests/e2e/test_judge_down.py",
            "tests/e2e/test_judge_mistakes.py",
            "tests/e2e/test_second_opinion.py",
            "tests/e2e/hostile/test_fair_judging.py",
        ],
        guards=[
            *("collector/judging/*.py", "collector/service/*.py", "collector/scoring/**/*.py"),
            *("collector/commands/*.py", "collector/doctor/*.py", "collector/watch/**/*.py"),
            *("collector/reading/**/*.py", "collector/api/**/*", "collector/export/*.py"),
            *("evaluators/formulas/*.py", "evaluators/*.py"),
            *("evaluators/judging/**/*", "evaluators/providers/*.py", "locks/requirements.lock"),
        ],
    ),
    "pages": Group(
        tests=[
            "tests/e2e/test_doc_pictures.py",
            "tests/e2e/test_page.py",
            "tests/e2e/test_page_for_everyone.py",
            "tests/e2e/test_page_of_the_demo.py",
            "tests/e2e/test_stream_live.py",
            "tests/unit/api/test_index_statements.py",
        ],
        guards=[
            *("collector/api/**/*", "collector/commands/demo*.py", "tests/support/axe/*"),
            *("scripts/pictures.py", "scripts/doc_pictures.py", "docs/pictures/*"),
        ],
    ),
    "memory": Group(
        tests=[
            "tests/e2e/hostile/test_heavy_redaction.py",
            "tests/e2e/hostile/test_real_memory.py",
            "tests/unit/scoring/test_session_memory.py::test_the_charge_is_what_tracemalloc_measures",
        ],
        guards=[
            *("collector/receiver/**/*.py", "collector/otlp/**/*.py", "collector/log/**/*.py"),
            *("collector/assembly/**/*.py", "collector/reading/**/*.py", "collector/records/*.py"),
            *("collector/scoring/**/*.py", "collector/base/heap.py", "evaluators/*.py"),
            "locks/requirements.lock",
        ],
    ),
    "clocks": Group(
        tests=["tests/e2e/test_clock_steps.py"],
        guards=[
            *("collector/base/clock.py", "collector/base/steady_clock.py", "collector/log/**/*.py"),
            *("collector/assembly/**/*.py", "collector/service/*.py", "tests/support/set_clock.py"),
            "tests/support/shifted_clock/*",
        ],
    ),
    "places": Group(
        tests=["tests/e2e/test_odd_places.py"],
        guards=[
            *("collector/base/*.py", "collector/service/*.py", "collector/judging/*.py"),
            *("collector/scoring/**/*.py", "collector/log/**/*.py", "Dockerfile"),
            "locks/requirements.lock",
        ],
    ),
    "agents": Group(
        tests=["tests/e2e/test_coding_agents.py"],
        guards=[
            *("docs/agents/*.md", "tests/support/claude_code/*", "tests/support/codex/*"),
            *("tests/support/gemini_cli/*", "collector/otlp/*.py", "collector/receiver/**/*.py"),
            *("collector/assembly/**/*.py", "evaluators/dialects/**/*.py"),
        ],
    ),
    "growth": Group(
        tests=[
            "tests/golden/test_false_alarms.py",
            "tests/property/test_growth.py",
            "tests/property/test_redaction_growth.py",
            "tests/property/test_simulated_faults.py::test_a_month_without_change_raises_next_to_nothing",
            "tests/property/watch/test_drift.py::test_a_month_without_change_raises_no_alarm",
            "tests/property/watch/test_drift.py::test_a_drop_is_noticed_within_the_stated_sessions",
            "tests/property/watch/test_drift.py::test_the_tables_in_the_docs_are_what_the_simulation_prints",
            "tests/unit/assembly/test_real_cost.py",
            "tests/unit/assembly/test_steps_of_linked_logs.py::test_no_step_is_longer_for_four_times_the_turns",
            "tests/unit/assembly/test_steps_of_linked_logs.py::test_twice_the_records_are_twice_the_steps",
            "tests/unit/dialects/test_steps_of_linked_logs.py::test_twice_the_records_are_twice_the_steps",
            "tests/unit/evaluators/formulas/test_release_verdict.py::test_a_release_that_changes_nothing_is_stopped_in_one_of_twenty_at_most",
        ],
        guards=[
            *("evaluators/**/*.py", "collector/assembly/**/*.py", "collector/otlp/*.py"),
            *("collector/receiver/feedback/*.py", "collector/records/*.py", "docs/alerting.md"),
            *("collector/watch/**/*.py", "scripts/research/faults.py"),
            *("docs/evidence.md", "scripts/research/drops.py", "scripts/research/false_alarms.py"),
            *("tests/data/captures/**/*", "tests/data/captures_logs/**/*"),
        ],
    ),
    "plugins": Group(
        tests=["tests/e2e/test_bad_plugins.py"],
        guards=[
            *("collector/base/*.py", "collector/scoring/**/*.py", "collector/judging/*.py"),
            *("collector/service/*.py", "evaluators/*.py", "evaluators/judging/*.py"),
            *("spanwise/*.py", "tests/support/bad_plugins.py"),
        ],
    ),
    "ends": Group(
        tests=["tests/e2e/hostile/test_rooms_that_only_show.py", "tests/e2e/test_what_ends.py"],
        guards=[
            *("collector/base/*.py", "collector/service/*.py", "collector/log/**/*.py"),
            *("collector/sinks/*.py", "collector/export/*.py", "collector/forward/*.py"),
            *("collector/judging/*.py", "collector/receiver/**/*.py", "collector/api/*.py"),
        ],
    ),
    "demo": Group(
        tests=["tests/e2e/test_demo.py"],
        guards=[
            *("collector/commands/demo*.py", "collector/watch/**/*.py", "collector/export/*.py"),
            *("collector/slo/**/*", "collector/api/*.py", "evaluators/formulas/*.py"),
            *("compose.yaml", "compose/**/*", "helm/spanwise/files/*", "scripts/dashboard/**/*"),
            *("README.md", "tests/support/everything_on.py"),
        ],
    ),
    "fuzz": Group(
        tests=files("tests/fuzz"),
        guards=[
            *("collector/**/*.py", "evaluators/**/*.py", "tests/fuzz/**/*"),
            "locks/requirements.lock",
        ],
    ),
    "chart": Group(
        tests=files("tests/chart"),
        guards=[
            *("helm/**/*", "scripts/chart/*.py", "scripts/dashboard/*.py", "tests/chart/*.py"),
            *("collector/config/*.py", "collector/slo/**/*", "collector/export/*.py"),
            *(
                "tests/data/chart/**/*",
                "tests/data/slo/*.yaml",
                "tests/unit/slo/*.py",
                "spanwise.yaml",
            ),
        ],
    ),
    "outlets": Group(
        tests=[
            *("tests/conformance/test_sink_mlflow.py", "tests/conformance/test_sink_phoenix.py"),
            "tests/conformance/test_forward_otelcol.py",
            "tests/conformance/test_notices.py",
            "tests/conformance/test_sink_datadog.py::test_the_bodies_fit_the_sdks_type",
            "tests/conformance/test_sink_langfuse.py::test_the_bodies_fit_the_sdks_model",
            "tests/conformance/test_sink_langsmith.py::test_the_bodies_fit_the_sdks_model",
        ],
        guards=[
            *("collector/sinks/**/*.py", "collector/forward/*.py", "collector/notices/*.py"),
            *("collector/base/http_client.py", "collector/base/retry.py"),
            *("tests/support/tools/**/*", "tests/support/sink_contract.py"),
        ],
    ),
    "exporters": Group(
        tests=["tests/conformance/receiver/test_otlp_node.py"],
        guards=[
            *("collector/receiver/**/*.py", "collector/otlp/**/*.py", "tests/support/node/*"),
            *("tests/support/*/package-lock.json", "locks/requirements.lock"),
        ],
    ),
    "starts": Group(
        tests=[
            "tests/e2e/test_first_process.py",
            "tests/e2e/test_forked.py",
            "tests/e2e/test_rest.py",
            "tests/e2e/test_turns_of_threads.py",
            "tests/e2e/test_working_directory.py",
        ],
        guards=[
            *("collector/base/*.py", "collector/commands/*.py", "collector/config/*.py"),
            *("collector/service/*.py", "spanwise/*.py", "Dockerfile", "pyproject.toml"),
            *("tests/support/warm*.py", "tests/support/command.py", "tests/bench/rest.py"),
            "locks/requirements.lock",
        ],
    ),
    "floods": Group(
        tests=[
            "tests/e2e/hostile/test_damaged_data.py",
            "tests/e2e/hostile/test_damaged_input.py",
            "tests/e2e/hostile/test_fair_admission.py",
            "tests/e2e/hostile/test_fair_buffer.py",
            "tests/e2e/hostile/test_heavy_requests.py",
            "tests/e2e/hostile/test_idle_and_slow.py",
            "tests/e2e/hostile/test_large_pages.py",
            "tests/e2e/hostile/test_large_trace.py",
            "tests/e2e/hostile/test_stop_always_ends.py",
            "tests/e2e/hostile/test_unfinished_grpc.py",
            "tests/e2e/hostile/test_worker_time.py",
        ],
        guards=[
            *("collector/**/*.py", "evaluators/**/*.py", "tests/support/hostile.py"),
            *("tests/support/http2.py", "tests/support/plugin.py", "locks/requirements.lock"),
        ],
    ),
    "crashes": Group(
        tests=[
            "tests/conformance/test_index_kill.py",
            "tests/e2e/test_crash.py",
            "tests/e2e/test_logs_live.py",
            "tests/e2e/test_recordings_live.py",
            "tests/e2e/test_replay_of_made_traces.py",
            "tests/property/log/test_log_kill.py",
        ],
        guards=[
            *("collector/**/*.py", "evaluators/**/*.py", "locks/requirements.lock"),
            *("tests/data/captures/**/*", "tests/data/captures_logs/**/*"),
            *("tests/support/log_child.py", "tests/support/index_child.py"),
        ],
    ),
}
