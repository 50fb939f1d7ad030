"""What the guardrail traces, seen by the OpenTelemetry SDK's in-memory exporters."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from opentelemetry import metrics, trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Telemetry(NamedTuple):
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    logs: InMemoryLogRecordExporter

    def tree(self) -> list[str]:
        """The spans by start, each indented below its parent."""
        spans = sorted(self.spans(), key=lambda span: span.start_time or 0)
        depth: dict[int, int] = {}
        lines = []
        for span in spans:
            above = depth[span.parent.span_id] + 1 if span.parent else 0
            depth[span.context.span_id] = above
            lines.append("  " * above + span.name)
        return lines

    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans() if span.name == name]

    def records(self) -> tuple[ReadableLogRecord, ...]:
        return self.logs.get_finished_logs()

    def points(self, name: str) -> dict[str, float]:
        """Count or value of a metric by its one label."""
        data = self.reader.get_metrics_data()
        return {
            "".join(str(value) for value in point.attributes.values()): getattr(
                point, "value", getattr(point, "count", None)
            )
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        }


@pytest.fixture(scope="session")
def provided() -> Telemetry:
    """Providers can be set once in a process."""
    found = Telemetry(InMemorySpanExporter(), InMemoryMetricReader(), InMemoryLogRecordExporter())
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found.exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([found.reader]))
    logger_provider = LoggerProvider()
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(found.logs))
    set_logger_provider(logger_provider)
    return found


@pytest.fixture
def telemetry(provided: Telemetry) -> Iterator[Telemetry]:
    provided.exporter.clear()
    provided.logs.clear()
    yield provided
    provided.exporter.clear()
    provided.logs.clear()
