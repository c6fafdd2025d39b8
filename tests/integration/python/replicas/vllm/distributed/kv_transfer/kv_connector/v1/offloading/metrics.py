# SPDX-License-Identifier: Apache-2.0
"""Replica: values of metrics on their way to Prometheus, with what kind each is."""

from dataclasses import dataclass, field


@dataclass
class OffloadingConnectorStats:
    data: dict = field(default_factory=lambda: {"types": {}, "data": {}})

    def is_empty(self) -> bool:
        return not self.data["data"]

    def increase_counter(self, counter_name: str, counter_increase_value: float = 1, labelvalues: tuple = ()) -> None:
        values = self._values("counter", counter_name)
        values[labelvalues] = values.get(labelvalues, 0) + counter_increase_value

    def set_gauge(self, gauge_name: str, gauge_value: float, labelvalues: tuple = ()) -> None:
        self._values("gauge", gauge_name)[labelvalues] = gauge_value

    def observe_histogram(self, histogram_name: str, histogram_value: float, labelvalues: tuple = ()) -> None:
        self._values("histogram", histogram_name).setdefault(labelvalues, []).append(histogram_value)

    def _values(self, kind, name):
        assert self.data["types"].setdefault(name, kind) == kind
        return self.data["data"].setdefault(name, {})
