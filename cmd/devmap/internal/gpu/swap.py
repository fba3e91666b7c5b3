"""Models that take turns on one GPU: that nothing stays, how long a wake takes, and what goes wrong."""

import json
import os
import shutil
import statistics
import tempfile
import time

import killed
import left
import refused
from certified import certified
from kernels import tested
from lines import documents, finish
from shared import MIB, SCRATCH, gauge, spending
from turns import Swap, available, heard

NAME = "swap"
MODELS = ("llama-3.2-1b", "qwen2.5-0.5b")
LARGE, LARGE_BYTES = "llama-3.1-8b", 16.1e9
CYCLES, WITHIN, WAKE = 20, 1.0, 1.15
OTHERS, SECONDS = 2 << 30, 8  # what another process takes in the middle, and of how long a run at least
TURNS = 5  # of the large model


def swap(shared, figures):
    """On the first GPU alone."""
    held = Swap(shared)
    with tempfile.TemporaryDirectory(prefix="devmap-swap-", dir=shared.folder) as held.folder:
        SCRATCH.append(held.folder)
        parts = {
            "weights": lambda: weights(held, figures),
            "cycles": lambda: [cycles(held, figures, keep) for keep in ("none", "host")],
            "a large model": lambda: wakes(held, figures),
            "another process": lambda: [others(held, figures, stays) for stays in (True, False)],
            "kills": lambda: killed.storm(held, figures),
            "refusals": lambda: refused.refusals(held, figures),
            "what a command leaves": lambda: left.commands(held, figures),
            "tests of Go": lambda: tests(held, figures),
        }
        asked = tuple(filter(None, shared.pieces.split(",")))
        for name, part in parts.items():
            if asked and not name.startswith(("weights", *asked)):
                continue
            begun = time.monotonic()
            with figures.attempt(NAME, name), spending(shared.spent, name):
                part()
            finish()
            print(f"swap: {name}: {time.monotonic() - begun:.1f} s", flush=True)


def weights(held, figures):
    """Checkpoints in memory. The large one is half as deep where the host has no room for its file, its copy and as much again."""
    if held.tiny:
        return
    models = os.path.join(held.folder, "configs")
    for name in (*MODELS, LARGE):
        shutil.copytree(os.path.join(held.shared.models, name), os.path.join(models, name))
    half = available() < 3 * LARGE_BYTES or shutil.disk_usage(held.folder).free < 1.5 * LARGE_BYTES
    if half:
        path = os.path.join(models, LARGE, "config.json")
        with open(path) as file:
            fields = json.load(file)
        with open(path, "w") as file:
            json.dump(fields | {"num_hidden_layers": fields["num_hidden_layers"] // 2}, file)
    held.shared.python("weights.py", models, held.folder, *MODELS, LARGE)
    figures.told(NAME, "the large model", "of half its layers" if half else LARGE, f"{available() >> 30} GiB of the host's memory can be had")


def outside(figures, case, run):
    """What NVML shows from here when a run has ended, beside what it showed before: the call begins the run, and returns what it makes of its end."""
    reading = gauge()
    before = reading.used()
    made = run()
    after = reading.settled(before, 5)
    note = f"{before / MIB:.1f} MiB, then {after / MIB:.1f}"
    figures.within(NAME, f"{case}: NVML, from here, beyond the start, MiB", max(0, after - before) / MIB, 0, note)
    return made


def cycles(held, figures, keep):
    """Twenty of two models: what each instrument has lost, by the numbers of the certificate and not by its verdict alone."""
    case = f"{CYCLES if not held.tiny else 5} cycles of two models" + ", kept" * (keep == "host")
    plans = [held.plan(model) for model in MODELS]

    def run():
        ran = held.run(plans, "--certify", "--cycles", CYCLES if not held.tiny else 5, "--keep", keep)
        status = ran.end()
        return status, *certified(ran)

    status, certificate, reports = outside(figures, case, run)
    verdict = certificate.document["verdict"]
    figures.same(NAME, f"{case}: verdict pass, exit status 0", (verdict == "pass") + (status == 0), 2, "; ".join(certificate.document["reasons"]))
    unloads = len(certificate.document["cycles"])
    figures.within(NAME, f"{case}: unloads with anything in the ledger that should not be", certificate.held(), 0, f"of {unloads}")
    for name, figure in (("the driver", "driver_free_bytes"), ("NVML", "nvml_used_bytes")):
        figures.within(NAME, f"{case}: granules lost from cycle 2 on, by {name}", certificate.lost(figure), 0, certificate.check("growth"))
    figures.within(NAME, f"{case}: seconds until free memory is back, at most", certificate.slowest(), WITHIN, certificate.check("nvml_free"))
    passed = sum(check["verdict"] == "pass" for check in certificate.document["checks"])
    figures.told(NAME, f"{case}: checks that pass", str(passed), certificate.check("refill") + "; " + certificate.check("poison"))
    told(figures, case, reports)
    if keep == "none":
        held.turn_seconds = certificate.run.seconds / len(reports)


def told(figures, case, reports):
    """Seconds of turns behind the first of each plan."""
    turns = [report["turn"] for report in reports if report["turn"]["cycle"] > 1]
    seconds = {kind: statistics.median(turn[kind + "_seconds"] for turn in turns) for kind in ("start", "end")}
    note = f"{turns[0]['start']}; from the last step to the end {seconds['end']:.3f} ({turns[0]['end']}); {len(reports)} turns"
    figures.told(NAME, f"{case}: median seconds from turn to first step", f"{seconds['start']:.3f}", note)


def wakes(held, figures):
    """A large model back from its pinned copy, beside what the link takes for as many bytes alone, and loaded anew. A
    small one has its turn in between: while the driver clears what was just given back, for some 40 ms, copies are slower,
    which a model that wakes at once behind its own sleep shows."""

    def run(models, *flags):
        ran = held.run([held.plan(model) for model in models], "--cycles", TURNS, *flags)
        if ran.end():
            raise RuntimeError(f"exit status {ran.process.returncode}: {ran.said[-800:]}")
        return [report["turn"] for report in documents(ran.out)][::len(models)]

    turns = outside(figures, "a large model, kept", lambda: run([LARGE, MODELS[0]], "--keep", "host"))
    woken, first = turns[1:], turns[0]
    size, rate = woken[0]["start_bytes"], rates(held, woken)
    case, seconds = f"a wake of {size / 1e9:.1f} GB", statistics.median(turn["start_seconds"] for turn in woken)
    every = ", ".join(f"{turn['start_seconds']:.3f}" for turn in woken)
    note = f"seconds {every}; mapped in {statistics.median(turn['map_seconds'] for turn in woken):.4f}"
    figures.same(NAME, f"{case}: turns behind the first that are woken", sum(turn["start"] == "woken" for turn in woken), TURNS - 1)
    bar = WAKE if not held.tiny else float("inf")
    note += f"; torch copies at {rate / 1e9:.2f} GB/s"
    figures.within(NAME, f"{case}: seconds / bytes at torch's rate from pinned memory", seconds * rate / size, bar, note)
    own = statistics.median(turn["start_seconds"] / turn["copy_seconds"] for turn in woken)
    copied = statistics.median(size / turn["copy_seconds"] for turn in woken)
    figures.within(NAME, f"{case}: seconds / its own copy's", own, bar, f"copied at {copied / 1e9:.2f} GB/s")
    sleeps = statistics.median(turn["end_seconds"] for turn in turns[1:])
    note = f"{first['end_seconds']:.2f} s, pages and all; later ones {sleeps:.3f} s with {turns[-1]['end_bytes']} bytes copied"
    figures.told(NAME, f"{case}: the first sleep, GB/s", f"{first['end_bytes'] / first['end_seconds'] / 1e9:.2f}", note)
    once = statistics.median(turn["start_seconds"] for turn in run([LARGE], "--keep", "host")[1:])
    figures.told(NAME, f"{case} at once behind its sleep: seconds / bytes at torch's rate", f"{once * rate / size:.2f}", f"{once:.3f} s")
    anew = run([LARGE])[1:]
    again, prepared = (statistics.median(turn[kind + "_seconds"] for turn in anew) for kind in ("start", "map"))
    note = f"{again:.3f} s, of which {prepared:.3f} until all was prepared; {size / again / 1e9:.1f} GB/s"
    figures.told(NAME, f"{case}: loaded anew from the file / woken", f"{again / seconds:.2f}", note)


def rates(held, woken):
    """torch's bytes a second from pinned memory to the GPU; where scripts are tried, the wake's own."""
    if held.tiny:
        return woken[0]["start_bytes"] / woken[0]["copy_seconds"]
    return json.loads(held.shared.python("loads.py", os.path.join(held.folder, MODELS[1])))["copy"]


def others(held, figures, stays):
    """Another process takes memory in the middle of it, and keeps it or gives it back."""
    case = "another process takes 2 GiB and " + ("stays" if stays else "leaves")
    count = min(60, max(6, int(SECONDS / (2 * held.turn_seconds))))

    def run():
        ran = held.run([held.plan(model) for model in MODELS], "--certify", "--cycles", count)
        if not ran.until("^turn 2 of"):
            raise RuntimeError(f"it did not come to its second cycle: {ran.said[-600:]}")
        with held.holder(OTHERS if not held.tiny else 8 * MIB) as process:
            heard(process, "held")
            came = ran.turns
            if stays:
                ran.end()
            else:
                ran.more(2)
        return came, ran.end(), *certified(ran)

    came, status, certificate, reports = outside(figures, case, run)
    verdict = certificate.document["verdict"]
    figures.same(NAME, f"{case}: verdict inconclusive, exit status 4", (verdict == "inconclusive") + (status == 4), 2, certificate.check("others"))
    note = f"it had its memory behind {came} of them; {certificate.check('baseline')}; {certificate.check('growth')}"
    figures.told(NAME, f"{case}: turns", str(len(reports)), note)


def tests(held, figures):
    """The backend's own: bits of turns, a wake that finds no room, refills."""
    if held.tiny:
        figures.told(NAME, "tests of Go", "left out", "they run kernels")
        return
    said = tested(figures, NAME, os.path.join(held.shared.binaries, "cuda.test"), "^TestGPU(Sleep|Wake|Refill)$", "tests of Go: sleep, wake, refill")
    for line in said.splitlines():
        if "the wake, " in line:
            when, share = line.split("the wake, ", 1)[1].split(", takes ")
            case, share = f"tests of Go: a wake, {when}, / the same copy alone", float(share.split()[0])
            if when == "at once":  # while the driver clears what its own sleep gave back, see wakes
                figures.told(NAME, case, f"{share:.3f}", line.strip())
            else:
                figures.within(NAME, case, share, WAKE, line.strip())
        if "by eighths" in line:
            figures.told(NAME, "tests of Go: " + line.split(": ", 1)[1].split(",")[0], "", line.rsplit(": ", 1)[1])
