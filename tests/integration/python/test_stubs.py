# SPDX-License-Identifier: Apache-2.0
"""The type stubs name what the compiled modules have, with as many arguments; public Python functions are annotated."""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import unittest


def stub_of(module):
    """The classes of a stub with their members, and its functions, each with its number of arguments; None: no function."""
    path = pathlib.Path(inspect.getfile(sys.modules[module.__package__])).parent / (module.__name__.split(".")[-1] + ".pyi")
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = {name: count for one in node.body for name, count in member(one, True)}
        else:
            found.update(member(node, False))
    return found


def member(node, in_class):
    if isinstance(node, ast.FunctionDef):
        arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        yield node.name, len(arguments)
    elif in_class and isinstance(node, ast.AnnAssign):
        yield node.target.id, None
    elif in_class and isinstance(node, ast.Assign):
        yield node.targets[0].id, None


def arguments_of(function):
    """The number of arguments that pybind11 says in the first line of the documentation."""
    arguments = re.match(r"\w+\((.*)\) -> ", function.__doc__)[1]
    depth, count = 0, 1 if arguments else 0
    for letter in arguments:
        depth += (letter in "[(") - (letter in "])")
        count += letter == "," and depth == 0
    return count


def members_of(thing):
    """What the module or class itself defines, as in stub_of()."""
    found = {}
    for name, value in vars(thing).items():
        if inspect.isclass(value) and value.__module__ == getattr(thing, "__name__", None):
            found[name] = members_of(value)
        elif isinstance(value, property):
            found[name] = None
        elif name == "__init__" and value.__doc__.startswith("Initialize self."):
            continue  # cannot be called
        elif name == "__init__" or (not name.startswith("_") and callable(getattr(thing, name))):
            found[name] = arguments_of(getattr(thing, name))
        elif hasattr(thing, "__members__") and name in thing.__members__:
            found[name] = None
    return found


def without_defaults(members):
    """Without the parts that pybind11 gives each enumeration."""
    if "__members__" in members or "name" in members and "value" in members:
        return {name: None for name in members if name.isupper()}
    return members


class Stubs(unittest.TestCase):
    def compare(self, name):
        module = importlib.import_module(name)
        real, stub = members_of(module), stub_of(module)
        self.assertEqual(sorted(real), sorted(stub))
        for what, members in real.items():
            if isinstance(members, dict):
                members = without_defaults(members)
            self.assertEqual(members, stub[what], f"{name}.{what}")

    def test_of_shmem_kv(self):
        self.compare("shmem_kv._core")
        self.compare("shmem_kv._exchange_core")

    def test_of_shmem_torch(self):
        try:
            import shmem_torch
        except ImportError as error:
            self.skipTest(str(error))
        self.assertTrue(shmem_torch.__version__)
        self.compare("shmem_torch._C")
        self.annotated(shmem_torch)

    def test_public_functions_are_annotated(self):
        import shmem_kv

        self.annotated(shmem_kv)

    def annotated(self, module):
        self.assertEqual(sorted(set(module.__all__)), sorted(module.__all__))
        self.assertTrue((pathlib.Path(module.__file__).parent / "py.typed").exists())
        for name in module.__all__:
            public = getattr(module, name)
            self.assertFalse(callable(public) and not public.__doc__, f"{name} is not documented")
            functions = [public] if inspect.isfunction(public) else []
            if inspect.isclass(public) and public.__module__.startswith(module.__name__) and not issubclass(public, tuple):
                functions += [one for key, one in vars(public).items() if inspect.isfunction(one) and not key.startswith("__")]
            for function in functions:
                signature = inspect.signature(function)
                self.assertIsNot(signature.return_annotation, inspect.Signature.empty, f"{name}: {function.__name__}")
                for argument in signature.parameters.values():
                    if argument.name != "self" and argument.name != "cls":
                        self.assertIsNot(argument.annotation, inspect.Parameter.empty, f"{function.__name__}: {argument}")
        top = pathlib.Path(__file__).parents[3] / "CMakeLists.txt"
        self.assertEqual(module.__version__, re.search(r"project\(gba VERSION ([0-9.]+)", top.read_text())[1])


if __name__ == "__main__":
    unittest.main(verbosity=0)
