# SPDX-License-Identifier: Apache-2.0
"""Groups that start as programs start them: by torchrun, with its variables, and by a TCPStore."""

import functools
import multiprocessing
import os
import pathlib
import signal
import sys
import tempfile
import unittest

try:
    import torch
    import torch.distributed as dist
    from torch.distributed import run as torchrun

    import shmem_torch  # noqa: F401: registers the backend
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LIMIT = 300
FORK = multiprocessing.get_context("fork")  # processes that have torch already


@functools.lru_cache
def without_libuv():
    """Whether this PyTorch was built without libuv, as Debian 13's 2.6 was, but its TCPStore uses it by default."""
    try:
        dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    except RuntimeError as error:
        if "libuv" not in str(error):
            raise
        return True
    return False


def tcp_store(*arguments, **options):
    if without_libuv():
        options["use_libuv"] = False  # PyTorch 1.13 does not know it
    return dist.TCPStore("127.0.0.1", *arguments, **options)


def check_calls():
    rank, size = dist.get_rank(), dist.get_world_size()
    for count in (1, 300_000):
        tensor = torch.full((count,), float(rank))
        dist.all_reduce(tensor)
        assert (tensor == size * (size - 1) / 2).all()
    dist.barrier()


def by_environment(folder, victim, backend):
    """A rank of torchrun. The victim dies in the first attempt; torchrun then starts all ranks again."""
    rank, attempt = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
    dist.init_process_group(backend)
    check_calls()
    if victim >= 0 and attempt == "0":
        # torchrun ends the other ranks, perhaps before they have seen the failure, which some of gloo's never do.
        if backend == "shmem":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        dist.barrier()
        if rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            while True:
                dist.all_reduce(torch.zeros(300_000))
        except RuntimeError as error:
            (folder / f"failure.{rank}").write_text(str(error))
        sys.exit(1)
    dist.destroy_process_group()
    (folder / f"done.{attempt}.{rank}").touch()


def by_tcp_store(folder, port, rank, size):
    store = tcp_store(port, size, False)
    dist.init_process_group("shmem", store=store, rank=rank, world_size=size)
    check_calls()
    dist.destroy_process_group()
    (folder / f"done.{rank}").touch()


def run_torchrun(arguments, variables, output):
    """`python3 -m torch.distributed.run`, in a session of its own: whatever happens, no rank is left."""
    os.setsid()
    with open(output, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ |= variables
    torchrun.main(arguments)


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "ranks"
        self.logs = pathlib.Path(folder.name) / "logs"
        self.folder.mkdir()
        self.logs.mkdir()

    def files(self):
        return sorted(file.name for file in self.folder.iterdir())

    def rendezvous(self):
        """torchrun's options and variables for that, as docs/python.md has them."""
        if not without_libuv():
            return ["--rdzv_backend", "c10d", "--rdzv_endpoint", "localhost:0"], {}
        # torchrun's own stores would need libuv: it uses a file, and rank 0 makes the ranks' store without libuv.
        variables = {"USE_LIBUV": "0", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TMPDIR": str(self.logs)}
        options = ["--rdzv_backend", "c10d", "--rdzv_conf", "store_type=file"]
        return [*options, "--local_addr", "localhost"], variables  # a host's name may have no address in a chroot

    def torchrun(self, victim, size=2, backend="shmem"):
        """What the ranks have written, by file. Another process may take the port that torchrun has found for rank 0: then
        again."""
        for _ in range(5):
            files, output = self.try_torchrun(victim, size, backend)
            if "address already in use" not in output.lower():
                return files
        self.fail(output)

    def try_torchrun(self, victim, size, backend):
        options, variables = self.rendezvous()
        options += ["--nproc_per_node", str(size), "--max_restarts", "1", "--monitor_interval", "0.2"]
        # A rank that does not exist: Python 3.11 and PyTorch 1.13 do not understand the defaults of these options.
        options += ["--redirects", "9:1", "--tee", "9:1", "--log_dir", str(self.logs)]
        output = self.logs / "output"
        arguments = [*options, __file__, str(self.folder), str(victim), backend]
        job = FORK.Process(target=run_torchrun, args=(arguments, variables, output))
        job.start()
        try:
            job.join(LIMIT)
        finally:
            if job.is_alive():
                os.killpg(job.pid, signal.SIGKILL)
                job.join()
        said = output.read_text()
        self.assertTrue(job.exitcode == 0 or "address already in use" in said.lower(), said)
        files = {file.name: file.read_text() for file in self.folder.iterdir()}
        for file in files:
            (self.folder / file).unlink()
        return files, said

    def test_torchrun(self):
        for size in (2, 4):
            for backend in ("gloo", "shmem"):
                with self.subTest(size=size, backend=backend):
                    self.assertEqual(sorted(self.torchrun(-1, size, backend)), [f"done.0.{rank}" for rank in range(size)])

    def test_torchrun_starts_four_ranks_again(self):
        for backend in ("gloo", "shmem"):
            with self.subTest(backend=backend):
                files = self.torchrun(2, 4, backend)
                failures = {file: text for file, text in files.items() if "failure" in file}
                self.assertEqual(sorted(files.keys() - failures.keys()), [f"done.1.{rank}" for rank in range(4)])
                if backend == "shmem":
                    self.assertEqual(sorted(failures), ["failure.0", "failure.1", "failure.3"])
                    for text in failures.values():
                        self.assertRegex(text, "rank 2 .*dead")

    def test_torchrun_starts_again_after_a_rank_was_killed(self):
        for victim in (0, 1):  # rank 0 serves the store
            with self.subTest(victim=victim):
                files = self.torchrun(victim)
                failure = f"failure.{1 - victim}"
                self.assertEqual(sorted(files), ["done.1.0", "done.1.1", failure])
                self.assertRegex(files[failure], f"rank {victim} .*dead")

    def test_tcp_store(self):
        size = 3
        store = tcp_store(0, None, True, wait_for_workers=False)
        ranks = [
            FORK.Process(target=by_tcp_store, args=(self.folder, store.port, rank, size)) for rank in range(size)
        ]
        try:
            for rank in ranks:
                rank.start()
            for rank in ranks:
                rank.join(LIMIT)
            self.assertEqual([rank.exitcode for rank in ranks], [0] * size)
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
        self.assertEqual(self.files(), [f"done.{rank}" for rank in range(size)])


if __name__ == "__main__":
    if len(sys.argv) == 1:
        unittest.main(verbosity=0)
    by_environment(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
