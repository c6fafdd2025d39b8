# SPDX-License-Identifier: Apache-2.0
"""Jobs that the tests start: PEs that die, are late or give up, the exceptions of the others, and no launcher."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import shmem_kv
from members import WITH_UCX

LIMIT = 300  # seconds, also for processes that import numpy on a slow machine

PROGRAM = """
import os, signal, sys, time
import numpy as np
import shmem_kv
from shmem_kv import Cache, KVShuffle, Operator, Plan

shmem_kv.init(16 << 20)
me = shmem_kv.my_pe()
k, v = shmem_kv.zeros((4, 2, 4, 8)), shmem_kv.zeros((4, 2, 4, 8))
cache, plan, operator = Cache(k, v), Plan([(0, 1, 1, 2)]), Operator()
try:
    {}
    print(f"PE {{me}}: nothing", flush=True)
except OSError as error:
    print(f"PE {{me}}: {{type(error).__name__}} {{error.errno}}: {{error.strerror}}", flush=True)
except Exception as error:
    print(f"PE {{me}}: {{type(error).__name__}}: {{error}}", flush=True)
"""


class Failures(unittest.TestCase):
    def lines(self, code, pes=2, **environment):
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        program = PROGRAM.format(code.replace("\n", "\n    "))
        job = subprocess.run(
            [oshrun, "-n", str(pes), "--gba", "off", "--timeout", "300", "--grace", "60", sys.executable, "-c", program],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=400,
        )
        self.output = job.stdout + job.stderr
        return {line[:4]: line[6:] for line in job.stdout.splitlines() if line.startswith("PE ")}

    def test_a_pe_that_dies_is_a_connection_error(self):
        lines = self.lines(
            """
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
operator.shuffle(plan, cache)
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1", self.output)

    def test_a_pe_that_dies_is_a_connection_error_in_two_phases_too(self):
        lines = self.lines(
            """
if me == 1:
    os.kill(os.getpid(), signal.SIGKILL)
operator.start(plan, cache)
operator.wait()
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1", self.output)

    def test_a_missing_pe_is_a_timeout(self):
        # The timeout is long enough for a slow start; PE 1 never calls the shuffle.
        with tempfile.TemporaryDirectory() as folder:
            lines = self.lines(
                f"""
gave_up = {os.path.join(folder, "gave_up")!r}
if me == 1:
    while not os.path.exists(gave_up):
        time.sleep(0.01)
    sys.exit(0)
try:
    operator.shuffle(plan, cache)
finally:
    open(gave_up, "w").close()
""",
                SHMEM_BARRIER_TIMEOUT="5",
            )
        self.assertRegex(lines.get("PE 0", ""), "^TimeoutError [0-9]+: .*PE 1", self.output)

    def test_a_partner_that_gives_up_is_an_aborted_connection(self):
        lines = self.lines("KVShuffle().compute([(1, 0), (0, 1)], k, v, [4 - me], [0])")
        self.assertRegex(lines.get("PE 0", ""), "^ValueError: .*block 4 of PE 0 to block 0 of PE 1", self.output)
        self.assertRegex(lines.get("PE 1", ""), "^ConnectionAbortedError [0-9]+: .*PE 0 gave up", self.output)

    def test_the_message_of_an_exception_is_not_printed_as_well(self):
        lines = self.lines("operator.shuffle(Plan([(0, 9, 1, 2)]), cache)")
        self.assertRegex(lines.get("PE 0", ""), "^ValueError: .*block 9 of PE 0", self.output)
        self.assertRegex(lines.get("PE 1", ""), "^ValueError: .*block 9 of PE 0", self.output)
        self.assertEqual(self.output.count("\n"), 2, self.output)

    def test_an_exception_that_is_not_caught_is_printed_once(self):
        # Of PE 0: the others end with the same status, and oshrun may learn of all of them at once.
        program = "import shmem_kv; shmem_kv.init(); assert shmem_kv.my_pe() != 0, 'mine'; shmem_kv.barrier_all()"
        job = subprocess.run(
            [os.path.join(os.environ["GBA_BIN"], "oshrun"), "-n", "16", "--gba", "off", sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=400,
        )
        self.assertEqual(job.returncode, 1, job.stderr)
        self.assertEqual(job.stderr.count("Traceback"), 1, job.stderr)
        self.assertIn("AssertionError: mine\n", job.stderr)
        self.assertRegex(job.stderr, r"oshrun: PE 0 \(pid [0-9]+\) on \S+ exited with status 1\n$")

    def test_an_exception_of_one_pe_ends_the_job(self):
        lines = self.lines(
            """
if me == 1:
    sys.exit(3)
shmem_kv.finalize()
"""
        )
        self.assertRegex(lines.get("PE 0", ""), "^ConnectionError [0-9]+: .*PE 1 .* exited with status 3", self.output)


def work(pe, pes, queues, failed):
    """A process of an application that starts its processes itself."""
    try:
        if pe == 0:
            unique_id = shmem_kv.unique_id()
            for queue in queues[1:]:
                queue.put(unique_id)
        else:
            unique_id = queues[pe].get(timeout=LIMIT)
        with shmem_kv.init(16 << 20, unique_id=unique_id, my_pe=pe, n_pes=pes):
            assert (shmem_kv.my_pe(), shmem_kv.n_pes()) == (pe, pes)
            k = shmem_kv.empty((4, 16, 8), np.uint16)
            k[:] = pe
            with shmem_kv.Operator() as operator:
                moves = [(source, 1, (source + 1) % pes, 2) for source in range(pes)]
                operator.shuffle(shmem_kv.Plan(moves), shmem_kv.Cache(k, format="latent"))
            assert (k[2] == (pe - 1) % pes).all() and (k[1] == pe).all()
    except BaseException as error:
        failed.put(f"PE {pe}: {error!r}")
        raise


def survive(pe, ids, results):
    """A PE of a job of three in which PE 2 dies, and then of a job of the others."""
    try:
        job = shmem_kv.init(4 << 20, unique_id=unique_id_of(pe, ids[0], 2), my_pe=pe, n_pes=3)
        array = shmem_kv.zeros((4,))
        operator = shmem_kv.Operator()  # ended by finalize
        shmem_kv.barrier_all()
        if pe == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        texts = []
        for call in (shmem_kv.barrier_all, lambda: shmem_kv.free(array), shmem_kv.finalize):
            try:
                call()
                texts.append("nothing")
            except ConnectionError as error:
                texts.append(error.strerror)
        assert all("PE 2" in text for text in texts) and not shmem_kv.initialized(), texts
        with shmem_kv.init(4 << 20, unique_id=unique_id_of(pe, ids[1], 1), my_pe=pe, n_pes=2):
            array = shmem_kv.zeros((4,))
            shmem_kv.barrier_all()
        results.put((pe, ""))
    except BaseException as error:
        results.put((pe, repr(error)))


def unique_id_of(pe, queue, others):
    if pe != 0:
        return queue.get(timeout=LIMIT)
    unique_id = shmem_kv.unique_id()
    for _ in range(others):
        queue.put(unique_id)
    return unique_id


def shuffle_among(team):
    """Each member sends a block to the next one."""
    me, pes = shmem_kv.my_pe(team), shmem_kv.n_pes(team)
    cache = shmem_kv.zeros((1, pes, 1, 64))
    cache[0, me] = 1 + me
    plan = shmem_kv.Plan([(i, i, (i + 1) % pes, i) for i in range(pes)])
    with shmem_kv.Operator(team) as operator:
        operator.shuffle(plan, shmem_kv.Cache(cache, format="latent"))
    before = (me - 1) % pes
    assert (cache[0, before] == 1 + before).all(), cache
    shmem_kv.free(cache)


def go_on(pe, victim, ids, results, each):
    """PE `victim` of four dies, and the others go on in the same job, with `each` of them on a node."""
    os.environ["SHMEM_HOST_ID"] = f"node{pe // each}"
    try:
        shmem_kv.init(4 << 20, unique_id=unique_id_of(pe, ids, 3), my_pe=pe, n_pes=4, survive=True)
        shmem_kv.barrier_all()
        if pe == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            shmem_kv.barrier_all()
            raise RuntimeError("the barrier with a dead PE ended")
        except ConnectionError:
            pass
        team = shmem_kv.team_shrink(shmem_kv.TEAM_WORLD)
        assert shmem_kv.team_failed(shmem_kv.TEAM_WORLD) == [victim] and shmem_kv.team_failed(team) == []
        assert shmem_kv.n_pes(team) == 3 and shmem_kv.my_pe(team) == pe - (pe > victim)
        for _ in range(100):
            shmem_kv.barrier(team)
        shuffle_among(team)
        shmem_kv.finalize()
        results.put((pe, ""))
    except BaseException as error:
        results.put((pe, repr(error)))


SEATS = """
import os, signal, sys
import shmem_kv

sys.path.insert(0, {folder!r})
from test_jobs import shuffle_among

shmem_kv.init(16 << 20, survive=True)
me = shmem_kv.my_pe()
is_new = shmem_kv.is_replacement()
team = shmem_kv.TEAM_WORLD
if not is_new:
    shmem_kv.barrier_all()
    if me == 1:
        os.kill(os.getpid(), {signal})
    try:
        shmem_kv.barrier_all()
        raise RuntimeError("the barrier without PE 1 ended")
    except (ConnectionError, TimeoutError):
        team = shmem_kv.team_shrink(team)
team = shmem_kv.team_grow(team)
assert shmem_kv.n_pes(team) == 3 and shmem_kv.my_pe(team) == me and shmem_kv.team_failed(team) == []
for _ in range(100):
    shmem_kv.barrier(team)
shuffle_among(team)
try:
    shmem_kv.barrier_all()
    raise RuntimeError("a barrier of the old world ended")
except (ConnectionError, TimeoutError):
    pass
shmem_kv.finalize()
print(f"PE {{me}}: {{'new' if is_new else 'old'}}", flush=True)
"""


class Seats(unittest.TestCase):
    def run_job(self, program, *options, **environment):
        oshrun = os.path.join(os.environ["GBA_BIN"], "oshrun")
        return subprocess.run(
            [oshrun, "-n", "3", "--gba", "off", "--timeout", "300", *options, sys.executable, "-c", program],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=400,
        )

    def test_a_new_process_takes_the_place_of_a_pe(self):
        # A PE that is stopped is missed after the timeout, which no other PE may be late by.
        for how, variables in (("SIGKILL", {}), ("SIGSTOP", {"SHMEM_BARRIER_TIMEOUT": "4"})):
            program = SEATS.format(folder=os.path.dirname(os.path.abspath(__file__)), signal=f"signal.{how}")
            job = self.run_job(program, "--restart", "1", **variables)
            lines = sorted(line for line in job.stdout.splitlines() if line.startswith("PE "))
            self.assertEqual(lines, ["PE 0: old", "PE 1: new", "PE 2: old"], job.stdout + job.stderr)
            self.assertEqual(job.returncode, 0, job.stdout + job.stderr)

    @unittest.skipUnless(WITH_UCX, "built without UCX")
    def test_what_cannot_grow_raises(self):
        program = """
import os
import shmem_kv
os.environ["SHMEM_HOST_ID"] = f"node{os.environ['OSHRUN_RANK']}"
shmem_kv.init(4 << 20, survive=True)
assert not shmem_kv.is_replacement()
try:
    shmem_kv.team_grow(shmem_kv.TEAM_WORLD)
except OSError as error:
    print(f"PE {shmem_kv.my_pe()}: {error.errno}: {error.strerror}", flush=True)
shmem_kv.finalize()
"""
        job = self.run_job(program)
        lines = [line for line in job.stdout.splitlines() if line.startswith("PE ")]
        self.assertEqual(len(lines), 3, job.stdout + job.stderr)
        for line in lines:
            self.assertRegex(line, f": {errno.ENOTSUP}: .*on several nodes", job.stdout + job.stderr)


class WithoutALauncher(unittest.TestCase):
    def test_the_others_go_on_without_a_dead_pe(self):
        os.environ["SHMEM_UID_SESSION_ID"] = "127.0.0.1:0"
        context = multiprocessing.get_context("spawn")
        # PE 0's process is the one that the others are connected to.
        for victim, each in ((0, 4), (2, 4), (0, 2), (3, 2)):
            ids, results = context.Queue(), context.Queue()
            processes = [context.Process(target=go_on, args=(pe, victim, ids, results, each)) for pe in range(4)]
            for process in processes:
                process.start()
            outcomes = dict(results.get(timeout=LIMIT) for _ in range(3))
            self.assertEqual(outcomes, {pe: "" for pe in range(4) if pe != victim})
            for process in processes:
                process.join(LIMIT)
            self.assertEqual(
                [process.exitcode for process in processes],
                [-signal.SIGKILL if pe == victim else 0 for pe in range(4)],
            )

    def test_without_survival_no_team_is_shrunk(self):
        with shmem_kv.init(4 << 20, unique_id=shmem_kv.unique_id(), my_pe=0, n_pes=1):
            with self.assertRaises(PermissionError):
                shmem_kv.team_shrink(shmem_kv.TEAM_WORLD)
            with self.assertRaises(ValueError):
                shmem_kv.team_failed(17)

    def test_a_dead_pe_raises_and_the_others_start_a_new_job(self):
        os.environ["SHMEM_UID_SESSION_ID"] = "127.0.0.1:0"
        context = multiprocessing.get_context("spawn")
        ids, results = [context.Queue(), context.Queue()], context.Queue()
        processes = [context.Process(target=survive, args=(pe, ids, results)) for pe in range(3)]
        for process in processes:
            process.start()
        outcomes = dict(results.get(timeout=LIMIT) for _ in range(2))
        self.assertEqual(outcomes, {0: "", 1: ""})
        for process in processes:
            process.join(LIMIT)
        self.assertEqual([process.exitcode for process in processes], [0, 0, -signal.SIGKILL])

    def test_a_job_starts_by_a_unique_id(self):
        os.environ["SHMEM_UID_SESSION_ID"] = "127.0.0.1:0"
        context = multiprocessing.get_context("spawn")
        queues, failed = [context.Queue() for _ in range(3)], context.Queue()
        processes = [context.Process(target=work, args=(pe, 3, queues, failed)) for pe in range(3)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(LIMIT)
            if process.is_alive():
                process.kill()
        self.assertEqual([process.exitcode for process in processes], [0, 0, 0], [] if failed.empty() else failed.get())


if __name__ == "__main__":
    unittest.main(verbosity=0)
