"""Where the time of a load goes: reads as TestGPULoad writes them, copies as trace.c does."""

import os
import subprocess

from steps import library

WAIT = 50e-3  # milliseconds: a gap between copies that is a wait for reads


def timeline(shared, figures, folder):
    """The fastest load of a model, in parts that add up."""
    engine = shared.engine("timeline")
    reads, copies = engine.place("reads"), engine.place("copies")
    environment = os.environ | {"DEVMAP_TEST_GPU": "1", "CUDA_INJECTION64_PATH": shared.once("trace", lambda: library(engine)), "DEVMAP_TRACE": copies, "DEVMAP_TRACE_COPIES": "1"}
    test = [os.path.join(shared.binaries, "cuda.test"), "-test.run", "^TestGPULoad$", "-load-folder", folder, "-load-reads", reads]
    done = subprocess.run(test, capture_output=True, text=True, check=False, timeout=120, env=environment)
    if done.returncode:
        raise RuntimeError(f"TestGPULoad: exit status {done.returncode}: {(done.stdout + done.stderr)[-800:]}")
    figures.told("loading", "a load, ms", *parts(*fastest(reads), copied(copies)))


def fastest(path):
    """The shortest load, and its reads: begin and end in ms, and bytes."""
    loads = []
    with open(path) as file:
        for line in file:
            kind, begin, end, size = line.split("\t")
            row = int(begin) / 1e6, int(end) / 1e6, int(size)
            if kind == "load":
                loads.append((row, []))
            else:
                loads[-1][1].append(row)
    return min(loads, key=lambda load: load[0][1] - load[0][0])


def copied(path):
    """All copies to the GPU, the earliest first."""
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t", 2) for line in file]
    return sorted((int(begin) / 1e6, int(end) / 1e6, int(name.split()[1])) for begin, end, name in lines if name.startswith("copy "))


def parts(load, reads, copies):
    """Milliseconds of a load, and the sentence that says what they are."""
    begin, end, size = load
    own = [copy for copy in copies if begin <= copy[0] < end]
    busy, gaps = sum(copy[1] - copy[0] for copy in own), [after[0] - copy[1] for copy, after in zip(own, own[1:])]
    waits = [gap for gap in gaps if gap > WAIT]
    first, reading = min(read[0] for read in reads), sum(read[1] - read[0] for read in reads)
    said = [f"until the first read {first - begin:.2f}", f"then until the first copy {own[0][0] - first:.2f}", f"{len(own)} copies {busy:.2f} ({size / busy / 1e6:.1f} GB/s)",
            f"{len(waits)} waits for reads {sum(waits):.2f}", f"other gaps {sum(gaps) - sum(waits):.2f}", f"after the last copy {end - own[-1][1]:.2f}"]
    return f"{end - begin:.2f}", ", ".join(said) + f"; {len(reads)} reads took {reading:.0f} ms of all readers"
