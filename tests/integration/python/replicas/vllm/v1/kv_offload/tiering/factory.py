# SPDX-License-Identifier: Apache-2.0
"""Replica: loads a tier by a registered type, or by module_path with the type as the name of its class."""

import importlib

from vllm.v1.kv_offload.tiering.base import SecondaryTierManager


class SecondaryTierFactory:
    _registry = {}

    @classmethod
    def get_tier_class(cls, tier_config) -> type[SecondaryTierManager]:
        kind, path = tier_config.get("type"), tier_config.get("module_path")
        if not kind:
            raise ValueError("a secondary tier has no 'type'")
        if kind in cls._registry:
            tier = cls._registry[kind]
        elif path is not None:
            tier = getattr(importlib.import_module(path), kind)
        else:
            raise ValueError(f"unknown secondary tier {kind!r}")
        assert issubclass(tier, SecondaryTierManager)
        return tier

    @classmethod
    def create_secondary_tier(cls, tier_config, primary_kv_view, offloading_spec) -> SecondaryTierManager:
        options = dict(tier_config)
        tier, kind = cls.get_tier_class(options), options.pop("type")
        options.pop("module_path", None)
        detector = options.pop("backpressure", None)  # vLLM makes a detector of the options that are here
        return tier(
            offloading_spec=offloading_spec,
            primary_kv_view=primary_kv_view,
            tier_type=kind,
            backpressure_detector=detector,
            **options,
        )
