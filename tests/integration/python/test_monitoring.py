# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the alert rules ask for metrics, labels and causes that an exchange and an operator export."""

import errno
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

import shmem_kv

FOLDER = pathlib.Path(__file__).parents[3] / "packaging/monitoring"
OF_PROMETHEUS = {"instance", "job"}  # labels that it adds


def exported():
    """The metrics of a member and of an operator: of each name, label names; and all causes."""
    with shmem_kv.Exchange(f"monitoring-{os.getpid()}", metrics=0) as exchange, shmem_kv.init(1 << 21):
        with shmem_kv.Operator(metrics=0) as operator:
            ports = [exchange.stats().metrics_port, operator.stats().metrics_port]
            pages = [urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode() for port in ports]
    samples = re.findall(r"^(shmem_\w+)(?:\{(.*)\})? ", "\n".join(pages), re.M)
    labels = {}
    for name, pairs in samples:
        labels.setdefault(name, set()).update(re.findall(r'(\w+)="', pairs))
    return labels, set(re.findall(r'cause="(\w+)"', "\n".join(pages)))


def asked_for():
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]
    variables = [str(one["query"]) for one in dashboard["templating"]["list"] if one["type"] == "query"]
    return expressions + variables + re.findall(r"^ +expr: (.*)", (FOLDER / "alerts.yml").read_text(), re.M)


class Monitoring(unittest.TestCase):
    def test_asks_for_what_there_is(self):
        labels, causes = exported()
        expressions = asked_for()
        self.assertGreaterEqual(len(expressions), 20)
        for expression in expressions:
            names = re.findall(r"\bshmem_\w+", expression)
            self.assertTrue(names, expression)
            for name in names:
                self.assertIn(name, labels, expression)
            known = set.union(*(labels[name] for name in names)) | OF_PROMETHEUS
            used = re.findall(r"(\w+)=~?\"", expression)
            used += [one for several in re.findall(r"by \(([^)]*)\)", expression) for one in several.split(", ")]
            self.assertLessEqual(set(used), known, expression)
            self.assertLessEqual(set(re.findall(r'cause="(\w+)"', expression)), causes, expression)

    @unittest.skipIf(shutil.which("promtool") is None, "promtool is not installed (Debian: prometheus)")
    def test_rules_are_rules(self):
        job = subprocess.run(["promtool", "check", "rules", FOLDER / "alerts.yml"], capture_output=True, text=True)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)


if __name__ == "__main__":
    try:
        shmem_kv.Exchange(f"monitoring-{os.getpid()}", metrics=0).close()
    except shmem_kv.ExchangeError as error:
        if error.errno != errno.ENOTSUP:
            raise
        print(f"skipped: {error}")
        sys.exit(77)
    unittest.main(verbosity=0)
