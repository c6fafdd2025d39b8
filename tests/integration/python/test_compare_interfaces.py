# SPDX-License-Identifier: Apache-2.0
"""compare_interfaces.py finds what differs between a replica, an adapter and a description."""

import copy
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import compare_interfaces

sys.path.insert(0, compare_interfaces.REPLICAS)


class Comparison(unittest.TestCase):
    def setUp(self):
        self.all = compare_interfaces.descriptions()

    def problems(self, engine, change):
        changed = copy.deepcopy(self.all[engine])
        change(changed)
        return "\n".join(compare_interfaces.compare(changed))

    def methods(self, description):
        return description["classes"][0]["methods"]

    def test_finds_each_kind_of_difference(self):
        def method(engine, change):
            return self.problems(engine, lambda description: change(self.methods(description)))

        new = {"arguments": [], "returns": "None", "rule": ""}
        self.assertIn("SecondaryTierManager has no method fly", method("vllm", lambda m: m.update(fly=new)))
        self.assertIn("ShmemTier has no method fly", method("vllm", lambda m: m.update(fly=new)))
        self.assertIn("touch is not described", method("vllm", lambda m: m.pop("touch")))
        self.assertIn("lookup: arguments", method("vllm", lambda m: m["lookup"].update(arguments=["key", "context"])))
        self.assertIn("ShmemTier.lookup: ", method("vllm", lambda m: m["lookup"].update(arguments=["key", "context"])))
        returned = method("vllm", lambda m: m["lookup"].update(returns="bool"))
        self.assertIn("lookup returns LookupResult, and not bool", returned)
        self.assertIn("touch is not abstract", method("vllm", lambda m: m["touch"].update(abstract=True)))
        self.assertIn("has no method fly", method("lmcache", lambda m: m.update(fly=new)))
        fields = self.problems("vllm", lambda d: d["classes"][1]["fields"].append("colour"))
        self.assertIn("TransferJob: fields", fields)
        self.assertIn("LookupResult: values", self.problems("vllm", lambda d: d["classes"][4]["values"].pop()))
        self.assertIn("constructor", self.problems("vllm", lambda d: d["classes"][0]["constructor"].append("colour")))
        required = self.problems("lmcache", lambda d: d["plugin"]["methods"].pop("close"))
        self.assertIn("REQUIRED", required)

    def test_an_adapter_overrides_what_it_should(self):
        from shmem_kv.adapters.vllm import ShmemTier

        def said(change):
            return self.problems("vllm", lambda description: change(self.methods(description)))

        self.assertEqual(said(lambda methods: None), "")
        needed = said(lambda methods: methods["on_schedule_end"].pop("inherited"))
        self.assertIn("ShmemTier.on_schedule_end is that of the engine, and not described as such", needed)
        second = self.problems("lmcache", lambda one: self.methods(one)["report_status"].update(inherited=True))
        self.assertIn("ShmemL2Adapter.report_status is its own, and not described as such", second)
        needless = said(lambda methods: methods["touch"].update(inherited=True))
        self.assertIn("ShmemTier.touch is its own, and not described as such", needless)
        shutdown = ShmemTier.shutdown
        self.addCleanup(setattr, ShmemTier, "shutdown", shutdown)
        del ShmemTier.shutdown  # an adapter that has forgotten it
        self.assertIn("ShmemTier.shutdown is that of the engine", said(lambda methods: None))

    def test_an_installed_engine_counts(self):
        with tempfile.TemporaryDirectory() as name:
            base = pathlib.Path(name) / "vllm/v1/kv_offload/tiering/base.py"
            base.parent.mkdir(parents=True)
            (pathlib.Path(name) / "vllm/__init__.py").write_text("__version__ = '9'\n")
            replica = pathlib.Path(compare_interfaces.REPLICAS) / "vllm/v1/kv_offload"
            metrics = "../../distributed/kv_transfer/kv_connector/v1/offloading/metrics.py"
            (base.parent.parent / metrics).resolve().parent.mkdir(parents=True)
            for file in ("base.py", "config.py", "tiering/base.py", "tiering/factory.py", metrics):
                (base.parent.parent / file).write_text((replica / file).read_text())
            text = base.read_text()

            def said():
                command = [sys.executable, compare_interfaces.__file__, "vllm"]
                path = ":".join([name, *sys.path])
                environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
                job = subprocess.run(command, capture_output=True, text=True, env=environment)
                return job.returncode, job.stdout + job.stderr

            status, output = said()
            self.assertEqual(status, 0, output)
            self.assertIn("compared with the installed vllm 9", output)
            base.write_text(text.replace("def lookup(self, key:", "def lookup(self, block:") + "    def new(self): ...\n")
            status, output = said()
            self.assertEqual(status, 1)
            self.assertIn("the installed vllm.v1.kv_offload.tiering.base:SecondaryTierManager.lookup: arguments", output)
            base.write_text(text.replace("def drain_jobs", "def drain"))
            status, output = said()
            self.assertIn("SecondaryTierManager has no method drain_jobs", output)
            self.assertIn("drain is not described", output)

    def test_a_name_that_is_no_engine_gets_the_usage(self):
        for argument, status in (("--help", 0), ("no-engine", 2)):
            command = [sys.executable, compare_interfaces.__file__, argument]
            job = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(job.returncode, status, job.stderr)
            self.assertIn("Engines: ", job.stdout + job.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=0)
