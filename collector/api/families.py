"""The metric families of the index and of the live stream."""

from collector.base.telemetry import Telemetry


class ApiFamilies:
    def __init__(self, telemetry: Telemetry) -> None:
        counter, gauge = telemetry.counter, telemetry.gauge
        self.index_bytes = gauge("index_bytes", "Bytes in use in the API's index.")
        self.index_limit_bytes = gauge("index_limit_bytes", "The limit of the API's index.")
        self.evicted = counter(
            "index_evicted",
            "Entries that the index forgot to stay within its limits.",
            "kind reason",
        )
        self.refused = counter(
            "index_refused_records", "Records that found no room in the index.", "topic"
        )
        self.answers_refused = counter(
            "answers_refused", "Pages and API answers that were refused, by reason.", "reason"
        )
        self.feedback = counter(
            "feedback",
            "Feedback that was joined with its session, by what it says.",
            "service agent name kind label",
        )
        self.feedback_unmatched = counter(
            "feedback_unmatched", "Feedback whose trace or session did not come within an hour."
        )
        self.external = counter(
            "external_evaluations",
            "Scores of other evaluators that became signals.",
            "service agent evaluator",
        )
        self.external_unmatched = counter(
            "external_evaluations_unmatched",
            "Scores of other evaluators whose trace or session did not come within an hour.",
        )
        self.external_dropped = counter(
            "external_evaluations_dropped",
            "Scores of other evaluators that became no signal, by reason.",
            "reason",
        )
        labels = "service agent evaluator name"
        self.agreement_kappa = gauge(
            "agreement_kappa_ratio",
            "Cohen's kappa of what an evaluator passes and what people like; absent below 30 pairs.",
            labels,
        )
        self.agreement_rank = gauge(
            "agreement_rank_ratio",
            "Chance that what people like has a higher score than what they dislike; absent below 30 pairs.",
            labels,
        )
        self.agreement_upper = gauge(
            "agreement_rank_upper_bound_ratio",
            "The upper bound of that chance, of judges alone; below 0.6 a judge is no better than chance.",
            labels,
        )
        self.agreement_samples = gauge(
            "agreement_samples",
            "Traces or sessions that both an evaluator and people judged; absent below 30.",
            labels,
        )
        self.agreements = (
            self.agreement_kappa,
            self.agreement_rank,
            self.agreement_upper,
            self.agreement_samples,
        )
        self.stream_clients = gauge("stream_clients", "Clients of the live stream now.")
        self.stream_dropped = counter(
            "stream_clients_dropped",
            "Clients of the live stream that were let go, by reason.",
            "reason",
        )
