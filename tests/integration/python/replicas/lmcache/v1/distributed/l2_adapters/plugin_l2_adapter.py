# SPDX-License-Identifier: Apache-2.0
"""Replica: loads a plug-in of LMCache's multi-process mode, which is a whole adapter."""

import importlib

from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface


def create_plugin_adapter(config, l1_memory_desc=None):
    """`config`: type, module_path, class_name, adapter_params, which the class gets as they are."""
    assert config["type"] == "plugin"
    adapter = getattr(importlib.import_module(config["module_path"]), config["class_name"])
    if not issubclass(adapter, L2AdapterInterface):
        raise TypeError(f"{config['class_name']} is not a subclass of L2AdapterInterface")
    further = {} if l1_memory_desc is None else {"l1_memory_desc": l1_memory_desc}
    return adapter(config.get("adapter_params", {}), **further)
