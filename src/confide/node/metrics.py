"""The state of a node in OpenMetrics, by prometheus_client. docs/operations.md lists the names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confide.errors import MissingExtra

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, StateSetMetricFamily
    from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import Collector, CollectorRegistry
except ImportError:
    raise MissingExtra("metrics need prometheus_client: pip install 'confide[metrics]'") from None

CONTENT_TYPE = CONTENT_TYPE_LATEST
STATES = ("starting", "agreeing", "greeting", "training", "serving", "finished", "stopped", "failed")


class _Node(Collector):
    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def collect(self) -> Iterator[Any]:
        s = self.state
        if not s:
            return
        yield InfoMetricFamily(
            "confide", "Who and what.",
            {"node": s["node"], "federation": s["federation"], "run": s["run"], "method": s["method"],
             "guarantee": s["guarantee"]},
        )  # fmt: skip
        yield StateSetMetricFamily("confide_state", "What it is doing.", {one: one == s["state"] for one in STATES})
        yield GaugeMetricFamily("confide_round", "Rounds that are complete.", s["round"])
        yield GaugeMetricFamily("confide_rounds", "Rounds in all.", s["rounds"])
        up = {name: one["up"] for name, one in s["neighbours"].items()}
        yield GaugeMetricFamily("confide_neighbours_up", "Neighbours that answer.", sum(up.values()))
        yield _each("confide_neighbour_up", "Whether it answers.", up)
        done = {name: bool(one.get("finished")) for name, one in s["neighbours"].items()}
        yield _each("confide_neighbour_finished", "Whether it has all it needs and may leave.", done)
        bad = {name: bool(one.get("misbehaved")) for name, one in s["neighbours"].items()}
        yield _each("confide_neighbour_misbehaved", "Whether it signed what it never should have.", bad)
        papers = {name: name in s["papers"] for name in {**up, **s["papers"]}}
        yield _each("confide_neighbour_papers_refused", "Whether the papers it showed last are wrong.", papers)
        yield CounterMetricFamily("confide_refused", "Connections and questions turned away.", s["refused"])
        yield GaugeMetricFamily("confide_journal_bytes", "Length of the run's journal.", s["journal_bytes"])
        if s["relay"]:
            yield GaugeMetricFamily(
                "confide_relay_up", "Whether others can call through the relay.", s["relay"] == "up"
            )
        for name, what, value in (
            ("confide_round_seconds", "Mean time of a round, over the last minute.", s["seconds_per_round"]),
            ("confide_epsilon_spent", "Of the population, over all its runs.", s["spent_epsilon"]),
            ("confide_epsilon_left", "What one more run may cost at most.", s["left_epsilon"]),
            ("confide_consensus_distance", "To the neighbours' messages, over the own one's length.",
             s["consensus_distance"]),
        ):  # fmt: skip
            if value is not None:
                yield GaugeMetricFamily(name, what, value)
        yield _each("confide_certificate_days", "Until it expires.", s["certificate_days"], "member")
        yield GaugeMetricFamily("confide_status_timestamp_seconds", "When this was so.", s["updated"])


def _each(name: str, what: str, values: dict[str, Any], label: str = "neighbour") -> Any:
    family = GaugeMetricFamily(name, what, labels=[label])
    for who, value in values.items():
        family.add_metric([who], float(value))
    return family


def exposition(state: dict[str, Any]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Node(state))
    return generate_latest(registry)
