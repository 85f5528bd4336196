"""The few shapes of PromQL that panels and rules are made of."""

from __future__ import annotations

import re

from guard import names
from tools.dashboards.catalog import Metric, label

# `job` and `instance` are on every metric; agent and model are a turn's, so process-wide gauges have none.
PROCESS = 'job=~"$job", instance=~"$instance"'
TURN = f'{PROCESS}, {label(names.AGENT_NAME)}=~"$agent", {label(names.REQUEST_MODEL)}=~"$model"'


def select(metric: Metric, *matchers: str, suffix: str = "") -> str:
    """A selector: the metric's series (`suffix` of a histogram) under the matchers."""
    inner = ", ".join(matcher for matcher in matchers if matcher)
    return f"{metric.prometheus}{suffix}" + (f"{{{inner}}}" if inner else "")


def grown(selector: str, window: str, by: str = "", ago: tuple[str, str] | None = None) -> str:
    """By how much a counter grew in the window, summed.

    `increase` alone misses the first value of a series, and a halt is often the first of its series:
    a counter born at 1 would never count. A series that was not there when the window began gives its
    last value instead. `ago` shifts the window back: (offset of its end, offset of its start).
    """
    end, start = (f" offset {ago[0]}", ago[1]) if ago else ("", window)
    born = f"last_over_time({selector}[{window}]{end}) unless {selector} offset {start}"
    return f"sum{f' by ({by})' if by else ''} (({born}) or increase({selector}[{window}]{end}))"


def or_zero(expression: str) -> str:
    """Zero where nothing was counted yet: an absent counter is an answer, not a gap."""
    return f"({expression}) or vector(0)"


def filled(expression: str, *, span: str = "6h", rate: str = "4m", variables: str = ".*") -> str:
    """The expression as Grafana sends it: its time macros and `$name` variables filled in."""
    for macro, value in (("$__rate_interval", rate), ("$__range", span), ("$__interval", rate)):
        expression = expression.replace(macro, value)
    return re.sub(r"\$(job|instance|agent|model)\b", variables, expression)
