#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the replicas of engines' interfaces, and the adapters, with interfaces.json, which says of which version and
source each description is; and with an engine that is installed. Usage: compare_interfaces.py [ENGINE...]

Classes, methods, names and order of arguments, what is abstract, results, fields and values must agree. Exits with 1 and
names each difference."""

import dataclasses
import enum
import importlib
import importlib.util
import inspect
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
REPLICAS = str(HERE / "replicas")


def load(name):
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def arguments_of(function):
    names = list(inspect.signature(function).parameters)
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def result_of(function):
    annotation = inspect.signature(function).return_annotation
    if annotation is inspect.Signature.empty:
        return None
    if annotation is None:
        return "None"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if hasattr(annotation, "__args__"):
        text = str(annotation)
    for module in ("collections.abc.", "typing.", "vllm.v1.kv_offload.tiering.base.", "vllm.v1.kv_offload.base."):
        text = text.replace(module, "")
    return text.strip("'\"")


def describe(thing):
    """What a class has, in the form of interfaces.json."""
    if issubclass(thing, enum.Enum):
        return {"values": [one.name for one in thing]}
    found = {"methods": {}}
    if dataclasses.is_dataclass(thing):
        found["fields"] = [field.name for field in dataclasses.fields(thing)]
    for name, raw in vars(thing).items():
        function = getattr(thing, name)
        if not name.startswith("_") and callable(function) and not inspect.isclass(function):
            found["methods"][name] = {
                "arguments": arguments_of(function),
                "returns": result_of(function),
                "abstract": getattr(raw, "__isabstractmethod__", False),
            }
    if "__init__" in vars(thing):
        found["constructor"] = arguments_of(thing.__init__)
    return found


def differences(where, described, found, exact):
    """`exact`: also what is not described is a difference, and results count."""
    for part in ("fields", "values", "constructor"):
        there = found.get(part, [])
        if part in described and (there != described[part] if exact else missing(described[part], there)):
            yield f"{where}: {part} {found.get(part)}, and not {described[part]}"
    methods = found.get("methods", {})
    for name, method in described.get("methods", {}).items():
        if name not in methods:
            yield f"{where} has no method {name}"
            continue
        if methods[name]["arguments"] != method["arguments"]:
            yield f"{where}.{name}: arguments {methods[name]['arguments']}, and not {method['arguments']}"
        if methods[name]["abstract"] != method.get("abstract", False):
            yield f"{where}.{name} is {'' if methods[name]['abstract'] else 'not '}abstract"
        if exact and methods[name]["returns"] != method["returns"]:
            yield f"{where}.{name} returns {methods[name]['returns']}, and not {method['returns']}"
    for name, method in methods.items():
        described_here = name in described.get("methods", {}) or "methods" not in described
        if not described_here and (method["abstract"] or (exact and described.get("adapted"))):
            yield f"{where}.{name} is not described"


def missing(wanted, there):
    return [one for one in wanted if one not in there]


def adapter_differences(description):
    """An adapter has each method itself, unless the description says that the engine's own does ("inherited"), and accepts
    the arguments that the engine passes, by position and by name."""
    described = [one for one in description["classes"] if one.get("adapted") or "adapter" in one]
    for one in [*described, description.get("plugin", {})]:
        path = one.get("adapter", description["adapter"])
        adapter = load(path)
        for name, method in one.get("methods", {}).items():
            function = getattr(adapter, name, None)
            if function is None:
                if not (method.get("inherited") and lacks_module(one)):
                    yield f"{path} has no method {name}"
                continue
            own = overrides(adapter, name)
            if own == bool(method.get("inherited")):
                yield f"{path}.{name} is {'its own' if own else 'that of the engine'}, and not described as such"
            instance = [] if inspect.ismethod(function) else [None]
            try:
                inspect.signature(function).bind(*instance, *method["arguments"])
                inspect.signature(function).bind(*instance, **{argument: None for argument in method["arguments"]})
            except TypeError as error:
                yield f"{path}.{name}: {error}"
        for argument in [*one.get("adapter_constructor", []), *(one.get("constructor", []) if one.get("adapted") else [])]:
            if argument not in inspect.signature(adapter.__init__).parameters:
                yield f"{path}: the constructor has no argument {argument}"


def overrides(adapter, name):
    """Whether the adapter, or a class of its package, has the method, and not just the engine's class."""
    package = adapter.__module__.partition(".")[0]
    return any(name in vars(one) for one in adapter.__mro__ if one.__module__.partition(".")[0] == package)


def lacks_module(described):
    return "needs" in described and importlib.util.find_spec(described["needs"]) is None


def replica_differences(description):
    for described in description["classes"]:
        if lacks_module(described):
            print(f"skipped: {described['name']} needs {described['needs']}")
            continue
        name = described.get("replica", described["name"])
        try:
            found = describe(load(name))
        except (ImportError, AttributeError) as error:
            yield f"the replica of {name}: {error}"
            continue
        yield from differences(f"the replica of {name}", described, found, exact=True)
    plugin = description.get("plugin")
    if plugin:
        required = {name for name, method in plugin["methods"].items() if not method.get("optional")}
        if set(load(plugin["replica"])) != required:
            yield f"{plugin['replica']}: {sorted(load(plugin['replica']))}, and not {sorted(required)}"


def installed_differences(description):
    """An installed engine is looked at in a process that knows no replicas."""
    command = [sys.executable, __file__, "--installed", description["engine"]]
    job = subprocess.run(command, capture_output=True, text=True, check=True)
    installed = json.loads(job.stdout.splitlines()[-1])
    if installed is None:
        print(f"{description['engine']} is not installed: compared with the description of {description['versions']} only")
        return
    print(f"compared with the installed {description['engine']} {installed['version']}")
    for described in description["classes"]:
        found = installed["classes"].get(described["name"])
        if found is not None:
            yield from differences(f"the installed {described['name']}", described, found, exact=False)
        elif "until" not in described:
            yield f"the installed {description['engine']} has no {described['name']}"


def print_installed(description):
    if importlib.util.find_spec(description["engine"]) is None:
        print("null")
        return
    classes = {}
    for described in description["classes"]:
        try:
            classes[described["name"]] = describe(load(described["name"]))
        except (ImportError, AttributeError):
            classes[described["name"]] = None
    version = getattr(importlib.import_module(description["engine"]), "__version__", "of an unknown version")
    print(json.dumps({"version": version, "classes": classes}))


def compare(description):
    """All differences, as texts."""
    return [*replica_differences(description), *adapter_differences(description), *installed_differences(description)]


def descriptions():
    return {one["engine"]: one for one in json.loads((HERE / "interfaces.json").read_text())}


def main():
    described = descriptions()
    if sys.argv[1:2] == ["--installed"]:
        print_installed(described[sys.argv[2]])
        return 0
    unknown = [name for name in sys.argv[1:] if name not in described]
    if unknown:
        wants_help = unknown[0] in ("-h", "--help")
        print(f"{__doc__}\n\nEngines: {', '.join(described)}", file=sys.stdout if wants_help else sys.stderr)
        return 0 if wants_help else 2
    sys.path.insert(0, REPLICAS)
    problems = []
    for name in sys.argv[1:] or described:
        one = described[name]
        print(f"{name}: versions {one['versions']}; described {one['described']} from: {one['source']}")
        problems += compare(one)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
