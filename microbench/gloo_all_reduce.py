"""Gloo's all-reduce through torch.distributed, as the twin of `all_reduce --serve`.

python gloo_all_reduce.py RANKS: answers each line "BYTES" on stdin with the mean seconds of one
all-reduce over a batch. One thread per rank, loopback only.
"""

import os
import subprocess
import sys
import tempfile
import time

MOST_BYTES = 64 << 20


def iterations_for(size):
    return min(max((64 << 20) // max(size, 1), 3), 500)


def mean_seconds(dist, values, size):
    part = values[: size // 4]
    dist.all_reduce(part)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(iterations_for(size)):
        dist.all_reduce(part)
    dist.barrier()
    return (time.perf_counter() - start) / iterations_for(size)


def run_rank(rank, ranks, store):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=ranks)
    values = torch.ones(MOST_BYTES // 4)
    asked = torch.zeros(1, dtype=torch.int64)
    while True:
        if rank == 0:
            line = sys.stdin.readline()
            asked[0] = min(int(line), MOST_BYTES) if line.strip() else 0
        dist.broadcast(asked, 0)
        if asked.item() == 0:
            break
        values.fill_(1)
        seconds = mean_seconds(dist, values, asked.item())
        if rank == 0:
            print(seconds, flush=True)
    dist.destroy_process_group()


def main():
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    if len(sys.argv) == 4:
        return run_rank(int(sys.argv[2]), int(sys.argv[1]), sys.argv[3])
    ranks = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        command = [sys.executable, __file__, str(ranks)]
        others = [
            subprocess.Popen([*command, str(r), store], stdin=subprocess.DEVNULL)
            for r in range(1, ranks)
        ]
        try:
            run_rank(0, ranks, store)
        finally:
            for process in others:
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    main()
