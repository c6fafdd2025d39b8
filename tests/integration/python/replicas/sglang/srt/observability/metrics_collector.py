# SPDX-License-Identifier: Apache-2.0
"""Replica: the statistics of a storage backend, and what SGLang makes of them."""

from dataclasses import dataclass, field


@dataclass
class StorageMetrics:
    """For each call since the last time: pages, and GB/s."""

    prefetch_pgs: list[int] = field(default_factory=list)
    backup_pgs: list[int] = field(default_factory=list)
    prefetch_bandwidth: list[float] = field(default_factory=list)
    backup_bandwidth: list[float] = field(default_factory=list)


class StorageMetricsCollector:
    """`histograms`: what Prometheus would have."""

    def __init__(self):
        self.histograms = StorageMetrics()

    def log_storage_metrics(self, storage_metrics=None):
        if storage_metrics is None:
            return
        assert isinstance(storage_metrics, StorageMetrics)
        for name, values in vars(storage_metrics).items():
            assert all(value > 0 for value in values)
            getattr(self.histograms, name).extend(values)
