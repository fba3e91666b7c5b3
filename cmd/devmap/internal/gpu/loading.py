"""Loading beside safetensors' own and beside what the machine copies to the GPU, from the same file."""

import json
import os
import tempfile

from engine import Job
from shared import MIB, SCRATCH

MODEL = "llama-3.2-1b"
COPIED, PEER = 0.85, 5.0


def loading(shared, figures):
    """Rates of a file in the page cache of a disk: the first ones are left out."""
    with tempfile.TemporaryDirectory(prefix="devmap-gpu-", dir="/var/tmp") as place:
        SCRATCH.append(place)
        shared.python("weights.py", shared.models, place, MODEL)
        beside(shared, figures, os.path.join(place, MODEL))


def beside(shared, figures, folder):
    engine = shared.engine("loading")
    plan = engine.plan(folder, Job(mode="load", precision="bf16-true"))
    found = [engine.run(plan).report["loading"] for _ in range(6)][2:]
    ours = max(one["bytes_per_second"] for one in found)
    theirs = json.loads(shared.python("loads.py", folder))
    note = f"{found[0]['bytes'] / MIB:.0f} MiB of {MODEL}, of 4 the fastest (" + ", ".join(f"{one['bytes_per_second'] / 1e9:.1f}" for one in found) + " GB/s)"
    figures.reaching("loading", "devmap / a copy from pinned memory", ours / theirs["copy"], COPIED, f"{note}; a copy {theirs['copy'] / 1e9:.1f} GB/s")
    figures.reaching("loading", "devmap / safetensors.torch.load_file", ours / theirs["load_file"], PEER, f"load_file {theirs['load_file'] / 1e9:.1f} GB/s, page cache warm for both")
