# SPDX-License-Identifier: Apache-2.0
"""What PyTorch builds on process groups computes the same with shmem as with gloo, on 2 and 4 ranks: most of it with
PyTorch 2.14, some with each version. torchrun with restarts is in test_launch.py."""

import os
import tempfile
import unittest

import torch
from ranks import RanksTest, dist, torch_version
from torch import nn

SIZES = (2, 4)
needs_new = unittest.skipUnless(torch_version() >= (2, 14), "tested with PyTorch 2.14")


def model_of(seed=0, width=8):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))


def batch_of(rank, step, width=8):
    return torch.randn(4, width, generator=torch.Generator().manual_seed(100 * step + rank))


def values(tensors):
    """What two backends that sum in different orders have in common."""
    return [[round(one, 4) for one in tensor.detach().double().flatten().tolist()] for tensor in tensors]


def functional_collectives(rank, size):
    import torch.distributed._functional_collectives as funcol

    group = dist.group.WORLD
    tensor = torch.arange(float(4 * size)) + rank
    results = [
        funcol.all_reduce(tensor, "sum", group),
        funcol.all_reduce(tensor, "max", group),
        funcol.all_gather_tensor(tensor, 0, group),
        funcol.reduce_scatter_tensor(tensor, "sum", 0, group),
        funcol.all_to_all_single(tensor, None, None, group),
        funcol.broadcast(tensor, size - 1, group),
        *funcol.all_reduce_coalesced([tensor, 2 * tensor], "sum", group),
        *funcol.all_gather_into_tensor_coalesced([tensor, tensor[:2]], group),
    ]
    return values(funcol.wait_tensor(one) for one in results)


def dtensors(rank, size):
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(1)
    left, right = torch.randn(8, 12), torch.randn(12, 4 * size)
    rows = distribute_tensor(left, mesh, [Shard(0)])
    columns = distribute_tensor(right, mesh, [Shard(1)])
    inner = distribute_tensor(left, mesh, [Shard(1)]) @ distribute_tensor(right, mesh, [Shard(0)])  # partial sums
    turned = rows.redistribute(mesh, [Shard(1)])
    mine = DTensor.from_local(torch.full((2,), float(rank)), mesh, [Shard(0)])
    return values([
        (rows @ columns.redistribute(mesh, [Replicate()])).full_tensor(),
        inner.full_tensor(),
        turned.to_local(),
        mine.full_tensor(),
        rows.sum().full_tensor(),
    ])


def meshes(rank, size):
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("outer", "inner"))
    results = []
    for name in ("outer", "inner"):
        tensor = torch.full((3,), float(rank))
        dist.all_reduce(tensor, group=mesh[name].get_group())
        results.append(tensor)
    mine, _ = dist.new_subgroups(2)
    tensor = torch.full((3,), rank + 0.5)
    dist.all_reduce(tensor, group=mine)
    results.append(tensor)
    split = dist.distributed_c10d._get_default_group().split_group([size - 1, 0])
    if split is not None:
        tensor = torch.full((3,), rank + 0.25)
        split.allreduce([tensor]).wait()
        results.append(tensor)
    return values(results), mesh.get_coordinate()


def fully_sharded(rank, size):
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import init_device_mesh

    model = model_of()
    mesh = init_device_mesh("cpu", (size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = model(batch_of(rank, step)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 4))
    return losses, values(one.full_tensor() for one in model.parameters())


def compiled(rank, size):
    def step(tensor):
        scaled = tensor * 2
        dist.all_reduce(scaled)
        gathered = torch.zeros(size * scaled.numel())
        dist.all_gather_into_tensor(gathered, scaled + rank)
        return gathered.sin()

    whole = torch.compile(step, backend="aot_eager", fullgraph=True)
    return values([whole(torch.arange(4.0) + rank), whole(torch.arange(4.0) - rank)])


def checkpoints(rank, size):
    import torch.distributed.checkpoint as checkpoint
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (size,))
    folder = [tempfile.mkdtemp()] if rank == 0 else [None]
    dist.broadcast_object_list(folder)
    torch.manual_seed(2)
    state = {"whole": torch.randn(6), "parts": distribute_tensor(torch.randn(8, 3), mesh, [Shard(0)])}
    checkpoint.save(state, checkpoint_id=folder[0])
    read = {"whole": torch.zeros(6), "parts": distribute_tensor(torch.zeros(8, 3), mesh, [Shard(1)])}  # other parts
    checkpoint.load(read, checkpoint_id=folder[0])
    result = values([read["whole"], read["parts"].full_tensor()])
    assert result == values([state["whole"], state["parts"].full_tensor()])
    dist.barrier()
    if rank == 0:
        import shutil

        shutil.rmtree(folder[0])
    return result


def pipelines(rank, size):
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

    results = []
    for schedule in (ScheduleGPipe, Schedule1F1B):
        stage = model_of(seed=rank)
        pipeline = PipelineStage(stage, rank, size, torch.device("cpu"))
        runner = schedule(pipeline, n_microbatches=size, loss_fn=lambda out, target: (out - target).square().mean())
        inputs, losses = torch.cat([batch_of(0, step) for step in range(size)]), []
        if rank == 0:
            runner.step(inputs)
        elif rank == size - 1:
            runner.step(target=torch.zeros_like(inputs), losses=losses)
        else:
            runner.step()
        results += values([one.grad for one in stage.parameters()] + losses)
    return results


def joined(rank, size):
    """Ranks with fewer batches than others."""
    from torch.distributed.algorithms.join import Join

    model = nn.parallel.DistributedDataParallel(model_of())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for step in range(2 + rank):
            optimizer.zero_grad()
            model(batch_of(rank, step)).square().mean().backward()
            optimizer.step()
    return values(model.parameters())


def objects(rank, size):
    everything = [None] * size
    dist.all_gather_object(everything, {"rank": rank, "text": "x" * 1000 * rank})
    gathered = [None] * size if rank == 1 else None
    dist.gather_object((rank, "a"), gathered, dst=1)
    some = [f"from {size - 1}", 7] if rank == size - 1 else [None, None]
    dist.broadcast_object_list(some, src=size - 1)
    mine = [None]
    dist.scatter_object_list(mine, [[one] * 2 for one in range(size)] if rank == 0 else None, src=0)
    if rank == 0:
        dist.send_object_list([{"to": 1}], dst=1)
    got = [None]
    if rank == 1:
        dist.recv_object_list(got, src=0)
    return everything, gathered, some, mine, got


def batches_of_messages(rank, size):
    tensors = [torch.zeros(5) for _ in range(size)]
    operations = [dist.P2POp(dist.isend, torch.full((5,), 10.0 * rank + to), to, tag=3) for to in range(size) if to != rank]
    operations += [dist.P2POp(dist.irecv, tensors[of], of, tag=3) for of in range(size) if of != rank]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return values(tensors)


def double(tensor):
    return 2 * tensor


def remote_calls(rank, size):
    """RPC beside the group."""
    from torch.distributed import rpc

    options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{os.environ['RPC_STORE']}", num_worker_threads=4)
    rpc.init_rpc(f"worker_{rank}", rank=rank, world_size=size, rpc_backend_options=options)
    future = rpc.rpc_async(f"worker_{(rank + 1) % size}", double, args=(torch.full((3,), float(rank)),))
    tensor = torch.ones(3)
    dist.all_reduce(tensor)
    result = values([future.wait(), tensor])
    rpc.shutdown()
    return result


class Layers(RanksTest):
    def check(self, body, sizes=SIZES):
        for size in sizes:
            with self.subTest(size=size):
                self.assertEqual(self.on_ranks(size, body), self.on_ranks(size, body, backend="gloo"))

    @needs_new
    def test_functional_collectives(self):
        self.check(functional_collectives)

    @needs_new
    def test_dtensor(self):
        self.check(dtensors)

    @needs_new
    def test_device_mesh(self):
        self.check(meshes)

    @needs_new
    def test_fsdp2(self):
        self.check(fully_sharded)

    @needs_new
    def test_compiled_functions(self):
        self.check(compiled)

    @needs_new
    def test_distributed_checkpoint(self):
        self.check(checkpoints)

    @needs_new
    def test_pipeline_parallel(self):
        self.check(pipelines)

    def test_ddp_with_join(self):
        self.check(joined)

    @needs_new
    def test_object_collectives(self):
        self.check(objects)

    def test_batch_isend_irecv(self):
        self.check(batches_of_messages)

    def test_rpc(self):
        from torch.distributed import rpc

        if not rpc.is_available() or not hasattr(torch._C._distributed_rpc, "TensorPipeAgent"):
            self.skipTest("this PyTorch was built without TensorPipe, by which RPC works")
        for size in SIZES:
            outcomes = []
            for backend in ("shmem", "gloo"):
                with tempfile.TemporaryDirectory() as folder:
                    os.environ["RPC_STORE"] = f"{folder}/rpc"
                    outcomes.append(self.on_ranks(size, remote_calls, backend=backend))
            self.assertEqual(*outcomes)


if __name__ == "__main__":
    unittest.main()
