"""What the parts of `make gpu` share: devmap on the GPU, PyTorch in processes of its own, probed topologies, an end."""

import concurrent.futures
import contextlib
import dataclasses
import functools
import json
import multiprocessing
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "conformance", "python")]
from engine import Engine  # noqa: E402
import nvml  # noqa: E402
from nvml import Gauge, Nothing  # noqa: E402

MIB = 1 << 20
SIMULATED = 0.10  # how far a simulated step may be off the measured one
AT_ONCE = 8  # runs side by side where nothing is timed and no memory is read


@contextlib.contextmanager
def spending(ledger, name):
    """Adds the seconds of what is done within."""
    begun = time.monotonic()
    try:
        yield
    finally:
        ledger[name] = ledger.get(name, 0) + time.monotonic() - begun


def nearest(cases, count):
    """Of cases by how many GPUs they take: those of the most GPUs that there are."""
    return cases[max(number for number in cases if number <= count)]


def devices(count, spread):
    """GPUs by the driver's numbers, one for each device of a plan."""
    return ",".join(str(number if spread else 0) for number in range(count))


class OnGPU(Engine):
    """devmap on the first GPU: every device of a plan is a program device of it. Spread, each has a GPU of its own."""

    def __init__(self, binary, folder, kind="cuda", transport="", spread=False):
        super().__init__(binary, folder)
        self.kind, self.transport, self.spread = kind, transport, spread
        # Where others hold memory beside it, a verdict is inconclusive: that is of memory, which has a part of its own.
        self.accepted = ("pass", "inconclusive")
        self.spent = {}

    def _call(self, words, *rest):
        with spending(self.spent, "devmap " + words[0]):
            return super()._call(words, *rest)

    def run(self, *args, **over):
        ran = super().run(*args, **over)
        loading, steps = ran.report.get("loading") or {}, ran.report["steps"]
        for name, seconds in (("of it loading", loading.get("seconds", 0)), ("of it steps", sum(step["seconds"] for step in steps))):
            self.spent[name] = self.spent.get(name, 0) + seconds
        return ran

    def plan(self, model, job, *flags):
        if "--topology" in flags:  # says how many devices there are
            job = dataclasses.replace(job, gpus=0)
        return super().plan(model, job, *flags)

    def simulated(self, plan):
        """What `devmap simulate` says of a plan's step."""
        return json.loads(self._call(["simulate", plan, "--json"]))

    def backend(self, plan):
        if self.kind == "cpu":
            return super().backend(plan)
        with open(plan) as file:
            count = len(json.load(file)["devices"])
        return ["--backend", self.kind, "--devices", devices(count, self.spread), *(["--transport", self.transport] if self.transport else [])]


class Shared:
    """What all parts are given. What one part made, another finds made."""

    def __init__(self, args, folder):
        self.root, self.seed, self.draws, self.small, self.kind, self.binary, self.folder = os.path.abspath(args.root), args.seed, args.draws, args.small, args.backend, args.devmap, folder
        self.models = os.path.abspath(args.models or os.path.join(args.root, "fixtures", "models"))
        self.binaries, self.gpu, self.probed, self.seconds = os.path.abspath(args.binaries), args.gpu or ("h200-141gb" if self.kind == "cpu" else ""), args.probed, args.seconds
        self.seq, self.pieces = 32 if self.kind == "cpu" else 2048, args.pieces  # tokens of what is timed and measured
        self._lock, self._made, self._peers = threading.Lock(), {}, {}
        self.spent = {}  # seconds of other programs, by name

    def engine(self, name, **over):
        """devmap in a folder that no other has: each counts its files from 1."""
        made = OnGPU(self.binary, tempfile.mkdtemp(prefix=name + "-", dir=self.folder), **{"kind": self.kind} | over)
        made.spent = self.spent
        return made

    def once(self, key, make):
        """What make returns, made by whoever asks first."""
        with self._lock:
            future = self._made.get(key)
            mine = future is None
            if mine:
                future = self._made[key] = concurrent.futures.Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as err:  # noqa: BLE001 (whoever waits is told)
                future.set_exception(err)
        return future.result()

    def config(self, model):
        """The folder of a model's config alone: its weights are drawn. Tried on a processor it is a small one of the
        same family."""
        return self.tiny(model) if self.kind == "cpu" else os.path.join(self.models, model)

    def tiny(self, model, **over):
        """A small one of a model's family, whose fields are as is said."""
        return self.once(("tiny", model), lambda: self._tiny(model, over))

    def _tiny(self, model, over):
        folder = os.path.join(self.folder, "tiny", model)
        os.makedirs(folder)
        with open(os.path.join(self.models, model, "config.json")) as file:
            fields = json.load(file)
        fields |= {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 500} | over
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({name: value for name, value in fields.items() if not name.endswith("_token_id")}, file)
        return folder

    def python(self, script, *words, timeout=400):
        """stdout of one of the scripts here: a process of its own, which holds nothing of the GPU afterwards."""
        with spending(self.spent, script):
            done = subprocess.run([sys.executable, os.path.join(HERE, script), *map(str, words)], capture_output=True, text=True, check=False, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"{script}: exit status {done.returncode}: {done.stderr[-800:]}")
        return done.stdout

    def streamed(self, script, *words, timeout=240):
        """The lines of such a script's stdout as they come."""
        with spending(self.spent, script), tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen([sys.executable, os.path.join(HERE, script), *map(str, words)], stdout=subprocess.PIPE, stderr=said, text=True)
            timer = threading.Timer(timeout, killed, [process.pid])
            timer.start()
            try:
                yield from process.stdout
                status = process.wait()
            finally:
                timer.cancel()
                if process.poll() is None:
                    killed(process.pid)
            if status:
                said.seek(0)
                raise RuntimeError(f"{script}: exit status {status}: {said.read()[-800:]}")

    def peer(self, *cases, **over):
        """What PyTorch took for some cases (peer.py), each measured once in this run."""
        flags = [word for name, value in over.items() for word in ("--" + name.replace("_", "-"), str(value))]
        missing = [case for case in cases if (case, *flags) not in self._peers]
        folder = {os.path.dirname(self.config(case.split("/")[0])) for case in cases}.pop()
        if missing:
            for line, case in zip(self.python("peer.py", folder, *missing, "--table", *flags).splitlines(), missing):
                self._peers[case, *flags] = json.loads(line)
        return {case: self._peers[case, *flags] for case in cases}

    def topology(self, count, spread=False):
        """Flags of plan for the first GPU as some program devices, or for as many GPUs: what `devmap probe` wrote."""
        if self.gpu:
            return ["--gpu", self.gpu]
        return ["--topology", self.once(("probe", count, spread), functools.partial(self._probe, count, spread))]

    def _probe(self, count, spread, times=3):
        """Once more where it was disturbed: it refuses to measure while others come and go."""
        path = os.path.join(self.probed or self.folder, f"topology{count}{'spread' * spread}.json")
        if os.path.exists(path):
            return path
        for _ in range(times):
            with spending(self.spent, "devmap probe"):
                done = subprocess.run([self.binary, "probe", "--devices", devices(count, spread), "-o", path], capture_output=True, text=True, check=False, timeout=120)
            if not done.returncode:
                print(done.stderr.rstrip(), flush=True)
                return path
            time.sleep(2)
        raise RuntimeError(f"devmap probe: exit status {done.returncode}: {done.stderr[-800:]}")

    def beside(self, tasks, at_once=AT_ONCE):
        """Carries out calls side by side."""
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for future in [pool.submit(task) for task in tasks]:
                future.result()


def parents():
    """Of every process the one that began it, by their numbers."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass  # it has ended
    return parents


def children(of):
    return {pid for pid, parent in parents().items() if parent == of}


def descendants(of):
    """Processes that a process began, and those that these did."""
    known, found = parents(), {of}
    while more := {pid for pid, parent in known.items() if parent in found} - found:
        found |= more
    return found - {of}


def killed(of):
    """Ends a process and all that it began: they would hold the GPU."""
    for pid in {of} | descendants(of):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


SCRATCH = []  # folders that are not to outlast this process
UNREAD = []  # what parts print that were begun


def read_out(path):
    """Prints what a part has printed."""
    UNREAD.remove(path)
    with open(path) as file:
        print(file.read(), end="", flush=True)


def ended(number, _):
    """Ends everything that was begun: what ran on would hold the GPU of whoever comes next."""
    for _ in range(3):
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    for path in list(UNREAD):
        read_out(path)
    for folder in SCRATCH:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(128 + number)


def heed():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ended)


def unheed():
    """Of a forked process, which its parent ends by SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def gauge():
    """What reads the memory of the first GPU that CUDA shows; where there is no GPU everything is nothing."""
    return gauges()[0]


def gauges():
    """The same of all GPUs that CUDA shows."""
    try:
        shown = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.isdigit()]
        return [Gauge(int(number)) for number in shown or range(nvml.count())]
    except OSError:
        if os.path.exists("/dev/nvidiactl"):
            raise
        return [Nothing()]


def quiet(seconds=15):
    """Waits until nothing holds a GPU, or for some seconds: what ended a moment ago may hold it still."""
    readings, begun = gauges(), time.monotonic()
    while max(reading.used() for reading in readings) > 16 * MIB and time.monotonic() - begun < seconds:
        time.sleep(0.1)


_TASKS = []  # what forked processes carry out: calls do not travel through a pipe


def _forked(index):
    import torch
    from figures import Figures

    torch.set_num_threads(1)  # a fork has none of the threads that its parent began
    own = Figures()
    ledger = {}
    return _TASKS[index](own, ledger) or [], own.rows, ledger


def apart(figures, spent, tasks, at_once=AT_ONCE):
    """Carries out calls that take figures and a ledger of seconds, side by side, each in a process of its own: building a model with
    Transformers sets things of the whole process. What they return is a list, and all of it comes back as one."""
    _TASKS[:] = tasks
    returned = []
    with multiprocessing.get_context("fork").Pool(at_once, initializer=unheed, maxtasksperchild=4) as pool:
        for said, rows, ledger in pool.imap(_forked, range(len(tasks))):
            figures.take(rows)
            for name, seconds in ledger.items():
                spent[name] = spent.get(name, 0) + seconds
            returned += said
    return returned


def warm(report, skip=2):
    """The median second of the steps of a report that are warm."""
    return statistics.median(step["seconds"] for step in report["steps"][skip:])


def simulated(figures, section, name, foretold, took):
    """The seconds of a simulated step, judged by those of the measured one."""
    figures.within(section, f"{name}: simulated / measured − 1", abs(foretold / took - 1), SIMULATED, f"{1e3 * foretold:.1f} ms simulated, {1e3 * took:.1f} measured")


def parts_of(device):
    """The milliseconds of each part of a step of a device of a report."""
    return " ".join(f"{part} {1e3 * device[part + '_seconds']:.1f}" for part in ("forward", "backward", "update", "wait"))


def machine(binary):
    """Lines that say where figures come from."""
    def said(*words):
        try:
            return subprocess.run(words, capture_output=True, text=True, check=False, timeout=30).stdout.strip()
        except OSError:
            return ""

    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")] or ["unknown processor"]
    gpu = said("nvidia-smi", "--query-gpu=name,memory.total,driver_version,clocks.max.sm", "--format=csv,noheader").replace("\n", "; ") or "no GPU"
    return [f"GPU: {gpu}", f"machine: {len(names)} cores, {names[0]}, Linux {os.uname().release}", f"devmap: {said(binary, 'version').splitlines()[:1]}"]


@contextlib.contextmanager
def scratch(inside=""):
    """A new folder: inside another, or in memory, or where temporary files go."""
    room = shutil.disk_usage("/dev/shm").free if os.path.isdir("/dev/shm") else 0
    with tempfile.TemporaryDirectory(prefix="devmap-gpu-", dir=inside or ("/dev/shm" if room > 40 << 30 else None)) as folder:
        SCRATCH.append(folder)
        yield folder
