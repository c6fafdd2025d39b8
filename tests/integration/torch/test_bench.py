# SPDX-License-Identifier: Apache-2.0
"""bench/torch_backends.py and bench/torch_step_sync.py measure to their end, and the first judges figures rightly. How fast
anything is here does not count."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "bench"))
import torch_backends  # exits with 77 without torch
import torch_step_sync


class Bench(unittest.TestCase):
    def test_measures_each_call(self):
        output = io.StringIO()
        sys.argv = ["torch_backends.py", "--sizes", "2", "--seconds", "0.001", "--bytes", "4,65536"]
        with contextlib.redirect_stdout(output):
            torch_backends.main()
        rows = [line.split() for line in output.getvalue().splitlines() if line.startswith("    2 ")]
        calls = {(call, dtype, int(count)) for _, call, dtype, count, *_ in rows}
        for call in ("all_reduce", "reduce", "reduce_scatter"):
            for dtype in ("float32", "bfloat16", "float16"):
                self.assertIn((call, dtype, 4), calls)
            self.assertIn((call, "int64", 65536), calls)
            self.assertNotIn((call, "int64", 4), calls)
        self.assertEqual(len(calls), 1 + 2 * 6 + 3 * 7)
        self.assertIn(f"verdict, 2 ranks: {len(calls)} calls, ", output.getvalue())

    def test_measures_messages_between_nodes(self):
        output = io.StringIO()
        sys.argv = ["torch_backends.py", "--sizes", "2", "--seconds", "0.001", "--bytes", "4096", "--nodes", "2"]
        sys.argv += ["--dtypes", "float32"]
        with contextlib.redirect_stdout(output):
            torch_backends.main()
        rows = [line.split() for line in output.getvalue().splitlines() if line.startswith("    2 ")]
        self.assertEqual([row[1] for row in rows], list(torch_backends.CALLS))
        self.assertEqual({(row[7], row[8]) for row in rows}, {("-", "-")})  # no symmetric memory
        self.assertEqual([row[1] for row in rows if len(row) == 12], ["barrier", "all_reduce"])  # with node_us and trip_us
        self.assertIn("verdict, 2 ranks: 10 calls, ", output.getvalue())

    def test_verdict(self):
        def missed(size, call, count, gloo, shmem, symmetric, copy=1.0):
            row = {"gloo": gloo, "shmem": shmem, "symmetric": symmetric, "copy": copy}
            return list(torch_backends.misses(size, [(call, "float32", count, row)]))

        self.assertEqual(missed(2, "barrier", 0, 20.0, 1.0, 1.0), [])
        self.assertEqual(len(missed(2, "barrier", 0, 19.0, 1.0, 1.0)), 2)
        self.assertEqual(len(missed(2, "send", 4096, 20.0, 1.0, 1.1)), 1)
        self.assertEqual(missed(2, "send", 65536, 4.0, 1.0, 1.0), [])
        self.assertRegex(missed(2, "send", 64 << 20, 3.0, 1.0, 0.5)[0], "shmem is 3.0 times as fast as gloo, not 4")
        self.assertEqual(missed(8, "barrier", 0, 1.0, 1.0, 1.0), [])
        self.assertEqual(len(missed(8, "barrier", 0, 0.9, 1.0, 0.9)), 1)
        self.assertEqual(missed(2, "all_reduce", 64 << 20, 10.0, 1.5, 1.4), [])
        self.assertRegex(missed(2, "all_reduce", 64 << 20, 10.0, 1.5, 1.5)[0], "67 % of the copy")
        without_gloo = {"shmem": 1.0, "symmetric": 1.0, "copy": 1.0}
        self.assertEqual(list(torch_backends.misses(2, [("all_reduce", "bfloat16", 4, without_gloo)])), [])

    def test_verdict_between_nodes(self):
        def missed(call, count, gloo, shmem, **more):
            row = {"gloo": gloo, "shmem": shmem, **more}
            return list(torch_backends.misses_on_nodes([(call, "float32", count, row)]))

        self.assertEqual(missed("barrier", 0, 9.0, 15.9, trip=10.0, node=3.0), [])
        self.assertEqual(len(missed("all_reduce", 4096, 99.0, 16.1, trip=10.0, node=3.0)), 1)
        self.assertEqual(missed("all_reduce", 65536, 99.0, 16.1, trip=10.0, node=3.0), [])
        self.assertEqual(missed("all_reduce", 64 << 20, 15.0, 10.0, trip=1.0, node=1.0), [])
        self.assertRegex(missed("all_reduce", 64 << 20, 14.0, 10.0)[0], "1.40 times as fast as gloo, not 1.5")

    def test_step_sync(self):
        output = io.StringIO()
        sys.argv = ["torch_step_sync.py", "--sizes", "2", "--seconds", "0.01", "--neighbours", "0", "--kills", "1"]
        with contextlib.redirect_stdout(output):
            torch_step_sync.main()
        steps, _, kills = output.getvalue().partition("until all others know")
        rows = [line.split()[:4] for line in steps.splitlines() if line.lstrip()[:2] in ("1 ", "2 ")]
        for nodes in ("1", "2"):
            for backend in ("gloo", "shmem"):
                self.assertIn([nodes, "2", "0", backend], rows, output.getvalue())
        lines = [line for line in kills.splitlines() if line.split()[:2] == ["shmem", "2"]]
        self.assertEqual(len(lines), 1, kills)
        self.assertIn("rank 1", lines[0])


if __name__ == "__main__":
    unittest.main(verbosity=0)
