"""OTLP/JSON is as the specification says."""

from __future__ import annotations

import math
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from guard.otlp_json import to_json


def request() -> ExportTraceServiceRequest:
    whole = ExportTraceServiceRequest()
    for name in ("one", "two"):
        resource = whole.resource_spans.add(schema_url="u")
        resource.resource.attributes.add(key="service.name").value.string_value = name
        scope = resource.scope_spans.add()
        scope.scope.name = "scope"
        span = scope.spans.add(name=name, kind=Span.SPAN_KIND_CLIENT, start_time_unix_nano=2**63 + 1)
        span.trace_id, span.span_id = b"\xab" * 16, b"\x01" * 8
        span.status.code = Status.STATUS_CODE_ERROR
        span.events.add(name="event")
        span.attributes.add(key="list").value.array_value.values.add().int_value = -5
    whole.resource_spans.add()
    return whole


def test_a_span_is_as_the_specification_says() -> None:
    span = to_json(request())["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert span["traceId"] == "ab" * 16
    assert span["spanId"] == "01" * 8
    assert span["startTimeUnixNano"] == str(2**63 + 1)
    assert (span["kind"], span["status"]) == (3, {"code": 2})
    assert span["attributes"] == [{"key": "list", "value": {"arrayValue": {"values": [{"intValue": "-5"}]}}}]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (AnyValue(string_value=""), {"stringValue": ""}),
        (AnyValue(bool_value=False), {"boolValue": False}),
        (AnyValue(int_value=0), {"intValue": "0"}),
        (AnyValue(double_value=0.5), {"doubleValue": 0.5}),
        (AnyValue(double_value=math.nan), {"doubleValue": "NaN"}),
        (AnyValue(double_value=-math.inf), {"doubleValue": "-Infinity"}),
        (AnyValue(bytes_value=b"\x00\xff"), {"bytesValue": "AP8="}),
        (AnyValue(), {}),
        (AnyValue(array_value=ArrayValue()), {"arrayValue": {"values": []}}),
        (
            AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(int_value=1))])),
            {"kvlistValue": {"values": [{"key": "k", "value": {"intValue": "1"}}]}},
        ),
    ],
)
def test_values(value: AnyValue, expected: dict[str, Any]) -> None:
    pair = KeyValue(key="k", value=value)
    assert to_json(pair) == {"key": "k", "value": expected}


def test_a_histogram_keeps_its_lists() -> None:
    whole = ExportMetricsServiceRequest()
    metric = whole.resource_metrics.add().scope_metrics.add().metrics.add(name="h")
    metric.histogram.data_points.add(count=3, bucket_counts=[1, 2], explicit_bounds=[0.5], sum=0.0)
    point = to_json(whole)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0]["histogram"]
    assert point["dataPoints"] == [
        {"count": "3", "bucketCounts": ["1", "2"], "explicitBounds": [0.5], "sum": 0.0}
    ]
