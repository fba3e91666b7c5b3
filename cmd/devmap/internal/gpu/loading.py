"""Loading beside safetensors' own and beside what the machine copies to the GPU, from the same file."""

import ctypes
import json
import mmap
import os
import tempfile

from engine import Job
from shared import MIB, SCRATCH
from timeline import timeline

MODEL = "llama-3.2-1b"
COPIED, PEER, COLD = 0.85, 5.0, 0.95


def loading(shared, figures):
    """Rates of a file in the page cache of a disk: the first ones are left out."""
    with tempfile.TemporaryDirectory(prefix="devmap-gpu-", dir="/var/tmp") as place:
        SCRATCH.append(place)
        shared.python("weights.py", shared.models, place, MODEL)
        beside(shared, figures, os.path.join(place, MODEL))


def beside(shared, figures, folder):
    engine = shared.engine("loading")
    plan = engine.plan(folder, Job(mode="load", precision="bf16-true"))
    cold(shared, figures, engine, plan, os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "model.safetensors"), "rb", buffering=0) as file:
        while file.read(1 << 26):  # cold loads leave nothing in the page cache
            pass
    found = [engine.run(plan).report["loading"] for _ in range(6)][2:]
    ours = max(one["bytes_per_second"] for one in found)
    theirs = json.loads(shared.python("loads.py", folder))
    note = f"{found[0]['bytes'] / MIB:.0f} MiB of {MODEL}, of 4 the fastest (" + ", ".join(f"{one['bytes_per_second'] / 1e9:.1f}" for one in found) + " GB/s)"
    figures.reaching("loading", "devmap / a copy from pinned memory", ours / theirs["copy"], COPIED, f"{note}; a copy {theirs['copy'] / 1e9:.1f} GB/s")
    figures.reaching("loading", "devmap / safetensors.torch.load_file", ours / theirs["load_file"], PEER, f"load_file {theirs['load_file'] / 1e9:.1f} GB/s, page cache warm for both")
    with figures.attempt("loading", "a load's parts"):
        timeline(shared, figures, folder)


def cold(shared, figures, engine, plan, path):
    """The page cache has no page of the file, before each of both."""
    ours, theirs = [], []
    for _ in range(3):
        evicted(path)
        theirs.append(float(shared.python("disk.py", path)))
        evicted(path)
        ours.append(engine.run(plan).report["loading"])
    direct = [one.get("disk_bytes_per_second", 0) / 1e9 for one in ours]
    note = f"{ours[0].get('disk_bytes', 0) / MIB:.0f} of {ours[0]['bytes'] / MIB:.0f} MiB past the page cache, at " + ", ".join(f"{one:.2f}" for one in direct) + f" GB/s; the disk {max(theirs) / 1e9:.2f} GB/s"
    figures.reaching("loading", "from a cold file: devmap / parallel direct reads", max(one["bytes_per_second"] for one in ours) / max(theirs), COLD, note)


def evicted(path):
    """Has the page cache drop a file, and raises if it keeps a page."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    size, libc = os.fstat(handle).st_size, ctypes.CDLL(None, use_errno=True)
    with mmap.mmap(handle, size, mmap.MAP_PRIVATE) as room:  # writable, for from_buffer
        pages, at = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE)), (ctypes.c_char * size).from_buffer(room)
        status = libc.mincore(ctypes.c_void_p(ctypes.addressof(at)), ctypes.c_size_t(size), pages)
        del at
    os.close(handle)
    kept = sum(page & 1 for page in pages.raw)
    if status or kept:
        raise RuntimeError(f"mincore: status {status}, {kept} pages are cached")
