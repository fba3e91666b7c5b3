"""Stands for torch's extension: two GPUs of 1000 bytes each."""

initialized, observers, stats = [], [], []
SIZE = 1000


def _cuda_init():
    initialized.append(True)
    for _ in range(2):
        stats.append({"allocated_bytes": {"all": {"current": 0, "peak": 0}}, "reserved_bytes": {"all": {"current": 0, "peak": 0}}, "num_ooms": 0, "num_alloc_retries": 0})


def _cuda_resetPeakMemoryStats(device):
    for name in ("allocated_bytes", "reserved_bytes"):
        figures = stats[device][name]["all"]
        figures["peak"] = figures["current"]


_accelerator_resetPeakStats = _cuda_resetPeakMemoryStats


def _cuda_attach_out_of_memory_observer(observer):
    if not initialized:
        raise RuntimeError("there are no allocators yet")
    observers.append(observer)


def allocate(size, device=0):
    import torch

    torch.cuda.init()
    if stats[device]["allocated_bytes"]["all"]["current"] + size > SIZE:
        stats[device]["num_ooms"] += 1
        for observer in observers:
            observer(device, size, SIZE, SIZE - stats[device]["allocated_bytes"]["all"]["current"])
        raise torch.OutOfMemoryError("CUDA out of memory")
    for name in ("allocated_bytes", "reserved_bytes"):
        figures = stats[device][name]["all"]
        figures["current"] += size
        figures["peak"] = max(figures["peak"], figures["current"])


def release(size, device=0):
    stats[device]["allocated_bytes"]["all"]["current"] -= size
