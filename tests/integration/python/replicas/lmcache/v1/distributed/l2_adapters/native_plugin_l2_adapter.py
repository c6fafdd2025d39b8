# SPDX-License-Identifier: Apache-2.0
"""Replica: loads a native plug-in of LMCache's multi-process mode."""

import importlib

from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import NativeConnectorL2Adapter

REQUIRED = ("event_fd", "submit_batch_get", "submit_batch_set", "submit_batch_exists", "drain_completions", "close")


def create_native_plugin_l2_adapter(config):
    """`config`: type, module_path, class_name, adapter_params."""
    assert config["type"] == "native_plugin"
    plugin = getattr(importlib.import_module(config["module_path"]), config["class_name"])
    client = plugin(**config.get("adapter_params", {}))
    for method in REQUIRED:
        if not callable(getattr(client, method, None)):
            if callable(getattr(client, "close", None)):
                client.close()
            raise TypeError(f"the plug-in has no {method}")
    return NativeConnectorL2Adapter(client, config.get("max_capacity_gb", 0), "native_plugin")
