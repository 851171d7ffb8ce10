"""What a server counts and measures, for Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
PAIRS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one server; several in one process do not share them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self.requests = Counter("relvec_requests", "Requests answered", ["path", "status"], registry=registry)
        self.failures = Counter("relvec_failures", "Requests refused or failed", ["type"], registry=registry)
        self.request_seconds = Histogram(
            "relvec_request_seconds",
            "From a request to the end of its answer",
            ["path"],
            buckets=SECONDS,
            registry=registry,
        )
        self.requests_in_flight = Gauge("relvec_requests_in_flight", "Requests being answered", registry=registry)
        self.queue_pairs = Gauge("relvec_queue_pairs", "Pairs that wait to be encoded", ["model"], registry=registry)
        self.queue_seconds = Histogram(
            "relvec_queue_seconds", "How long a pair waited to be encoded", buckets=SECONDS, registry=registry
        )
        self.encoding_seconds = Histogram(
            "relvec_encoding_seconds", "How long a batch took to encode", buckets=SECONDS, registry=registry
        )
        self.batch_pairs = Histogram("relvec_batch_pairs", "Pairs in a batch", buckets=PAIRS, registry=registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)
