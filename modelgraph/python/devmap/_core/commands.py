"""The functions of the package: each runs the command of its name, and returns the answer as an object."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from . import binary
from .answers import Check, Estimate, Infeasible, Inspection, Report
from .errors import DevmapError, UsageError
from .flags import CheckKeywords, EstimateKeywords, InspectFlags, PlanKeywords
from .measured import Measured
from .model import Model
from .plan import GPUs, Path, Plan, PlanFile
from .settings import Translated, downloaded
from .verified import Verified
from .words import words

if TYPE_CHECKING:
    from typing_extensions import Unpack
elif sys.version_info >= (3, 11):
    from typing import Unpack
else:

    class Unpack:
        """As typing has it since Python 3.11."""

        def __class_getitem__(cls, of: object) -> object:
            return of


class _Call:
    """One call: the model as a path, and the keywords as flags."""

    def __init__(self, command: str, model: object, inputs: Any, no_split: Any, flags: Mapping[str, Any]) -> None:
        self.model, self.inputs, self.no_split = model, inputs, no_split
        translated = Translated(command, flags)
        self.notes, self.flags = translated.notes, translated.flags
        if translated.flags.get("objective") == "front":
            raise UsageError("objective='front' has several plans: 'memory' and 'time' have one")
        config: Any = translated.flags.get("ds_config")
        written = {"ds_config": "a file"} if hasattr(config, "items") else {}
        words(command, {**translated.flags, **written})  # a wrong keyword is told before a module is exported
        self.settings: dict[str, Any] = {}
        if translated.download:
            model = downloaded(model)
            self.settings["download"] = True
        if translated.architecture:
            self.settings["architecture"] = translated.architecture
        runs = translated.flags.get("mode") != "load"
        self.read = Model(model, inputs, no_split, runs, translated.architecture)
        self.inputs = self.read.inputs
        if translated.autocast:
            translated.stored(_stored_precision(self.read.path))
        if written:
            translated.flags["ds_config"] = self.read.beside("ds_config.json", dict(config))
        self.arguments = [command, *words(command, translated.flags), "--", self.read.path]

    def again(self, flags: Mapping[str, Any]) -> Plan:
        """Plans the same model with other keywords."""
        merged: dict[str, Any] = {**self.settings, **flags}
        return plan(self.model, inputs=self.inputs, no_split=self.no_split, **merged)

    def told(self, error: DevmapError) -> DevmapError:
        """The error, with remedies that know the call."""
        if isinstance(error, Infeasible):
            error.notes[:0] = self.notes
            for remedy in error.remedies:
                remedy.asked({**self.settings, **self.flags}, self.again)
        return error

    def plan(self, ran: binary.Ran, proven: bool) -> Plan:
        """The plan of the answer; of a module one that runs: it is tried, if proven is asked for."""
        made = Plan(ran.stdout, self.read if self.read.folder else None, self.notes)
        engine = (made.strategy, made.document["workload"].get("runtime"))
        if not proven or not self.read.module or engine not in (("device-map", "accelerate"), ("pipeline", "torch")):
            return made
        if len(made.devices) < 2 or self.read.unseen:
            return made
        try:
            tried = verify(self.read.model, made, inputs=self.inputs)
        except DevmapError as error:
            self.notes.append(f"the map was not tried: {error}")
            return Plan(ran.stdout, self.read, self.notes)
        if not tried:
            helps = "put them on one GPU with together=, or move one of them at that line"
            if "cpu" in tried.devices:
                helps = "register what is on the CPU as a buffer or a module"
            elif made.strategy == "pipeline":
                helps = "put them into one stage with together=, or plan strategy='device-map'"
            raise DevmapError(f"{tried.message}: {helps}", 4)
        return made


def _stored_precision(path: str) -> str:
    """The precision of a model's weights as they are stored."""
    ran = binary.run(["plan", "--mode=load", "--gpus=64", "--gpu=b200-180gb", "--", path])
    return str(json.loads(ran.stdout)["workload"].get("precision", ""))


def _document(ran: binary.Ran) -> Optional[dict[str, Any]]:
    """The JSON document that a command printed first; None if that is an error, or nothing."""
    if not ran.stdout.lstrip().startswith("{"):
        return None
    document, _ = json.JSONDecoder().raw_decode(ran.stdout.lstrip())
    found: dict[str, Any] = document
    return None if str(found.get("format_version", "")).startswith("devmap.error/") else found


def plan(
    model: object,
    gpus: Optional[GPUs] = None,
    *,
    inputs: Any = None,
    no_split: Any = None,
    verify: bool = True,
    **flags: Unpack[PlanKeywords],
) -> Plan:
    """Finds the placement with the lowest peak memory, and proves it.

    model is a folder, a config.json, a model.json, a name, a config of Transformers, a torch.nn.Module, or what
    devmap.export returned. A module also takes inputs, the arguments of one forward, and no_split, the classes that one
    GPU holds whole. Its map is tried with devmap.verify, unless verify is False.

    gpus is a count, "auto" for this machine, or capacities: ["80GiB", "24GiB"].

    Every flag of `devmap help plan` is a keyword: mode, batch, seq, strategy, precision, optimizer, recompute, pin, ….
    devmap.PlanFlags lists them. dtype, args, peft_config, quantization_config, gradient_checkpointing, max_memory,
    architecture and download take what Hugging Face libraries do.

    Raises Infeasible, with remedies, if nothing fits, and UsageError if a keyword is wrong.

    >>> import devmap
    >>> plan = devmap.plan("gpt2", gpus=2, gpu="rtx-4090", mode="train", batch=4)
    >>> plan.fits, len(plan.peaks), sorted(set(plan.device_map.values()))
    (True, 2, [0, 1])
    """
    call = _Call("plan", model, inputs, no_split, {"gpus": gpus, **flags})
    try:
        return call.plan(binary.run(call.arguments), verify)
    except DevmapError as error:
        raise call.told(error) from None


async def aplan(
    model: object,
    gpus: Optional[GPUs] = None,
    *,
    inputs: Any = None,
    no_split: Any = None,
    verify: bool = True,
    timeout: Optional[float] = None,
    **flags: Unpack[PlanKeywords],
) -> Plan:
    """Plans as devmap.plan does, without blocking the event loop. Cancelling the task stops the program.

    timeout is the time limit of the search in seconds.

    >>> import asyncio, devmap
    >>> asyncio.run(devmap.aplan("gpt2", gpus=2, timeout=30)).fits
    True
    """
    import asyncio

    asked: dict[str, Any] = {"gpus": gpus, **flags}
    if timeout is not None:
        asked["time_limit"] = timeout
    call = await asyncio.to_thread(_Call, "plan", model, inputs, no_split, asked)
    try:
        ran = await binary.run_async(call.arguments)
        return await asyncio.to_thread(call.plan, ran, verify)
    except DevmapError as error:
        raise call.told(error) from None


def estimate(
    model: object,
    gpus: Optional[GPUs] = None,
    *,
    inputs: Any = None,
    no_split: Any = None,
    **flags: Unpack[EstimateKeywords],
) -> Estimate:
    """Compares the strategies for a model: which fit, their peaks and their step times.

    >>> import devmap
    >>> estimate = devmap.estimate("gpt2", gpus=2, gpu="rtx-4090", mode="train", batch=4)
    >>> len(estimate.fits) > 3, estimate.rows[0].fits
    (True, True)
    """
    call = _Call("estimate", model, inputs, no_split, {"gpus": gpus, **flags})
    call.arguments.insert(1, "--json")
    ran = binary.run(call.arguments, allowed=(0, 3))
    refusal = call.told(ran.error()) if ran.status else None
    document = _document(ran)
    if document is None:
        raise refusal or call.told(ran.error())
    return Estimate(document, refusal.remedies if isinstance(refusal, Infeasible) else [], call.again)


def check(
    model: object,
    map: Union[Plan, Mapping[str, Union[int, str]], Path],
    gpus: Optional[GPUs] = None,
    *,
    inputs: Any = None,
    no_split: Any = None,
    **flags: Unpack[CheckKeywords],
) -> Check:
    """Checks a map: a plan, a device map (module → GPU), or a file with one. It reports every fault.

    >>> import devmap
    >>> check = devmap.check("gpt2", {"transformer": 0, "lm_head": 1}, gpus=2)
    >>> bool(check), check.faults[0].kind
    (False, 'ties-apart')
    """
    import tempfile

    call = _Call("check", model, inputs, no_split, {"gpus": gpus, **flags})
    with tempfile.TemporaryDirectory(prefix="devmap-") as folder:
        path = os.path.join(folder, "map.json")
        if isinstance(map, Plan):
            map.save(path)
        elif isinstance(map, (str, os.PathLike)):
            path = os.fspath(map)
        else:
            with open(path, "w", encoding="utf-8") as file:
                json.dump(_modules("check", map), file, default=str)  # "cuda:0" of a torch.device
        ran = binary.run(["check", "--json", *call.arguments[1:], path], allowed=(0, 3, 4))
    document = _document(ran)
    if document is None:
        raise call.told(ran.error())
    notes = [line[len("note: ") :] for line in ran.stderr.splitlines() if line.startswith("note: ")]
    return Check(document, [*call.notes, *notes])


def _modules(function: str, map: Any) -> dict[str, Any]:
    if not hasattr(map, "items"):
        raise UsageError(f"{function}: a {type(map).__name__} is no map: give a plan, a device map (module → GPU), or a file with one")
    return dict(map)


def _read_map(path: Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise DevmapError(f"verify: {os.fspath(path)} cannot be read as a map: {said}") from None
    return _modules(f"verify: {os.fspath(path)}", document)


def verify(
    module: Any,
    map: Union[Plan, Mapping[str, Union[int, str]], Path],
    *,
    inputs: Any = None,
    engine: Optional[str] = None,
) -> Verified:
    """Runs a forward and a backward of a torch.nn.Module under a map, on GPUs that are not there.

    Tensors have devices and sizes, and no data. They move as Accelerate's hooks move them. The result is true if no
    operation reads tensors of two GPUs; else it names the module, the line, the operation and the devices.

    map is a plan, a device map (module → GPU), or a file with one. inputs are the arguments of one forward, as a tuple or
    a dict. Transformers models of text need none.

    engine is "accelerate", or "torch" for stages of torch.distributed.pipelining: then a map is module → stage, and
    tensors cross GPUs where a stage begins. Without it, a plan names its engine.

    Raises DevmapError if the forward cannot be run on tensors without data.

    >>> import devmap, torch  # doctest: +SKIP
    >>> net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))  # doctest: +SKIP
    >>> devmap.verify(net, {"0": 0, "1": 1}, inputs=(torch.zeros(2, 8),))  # doctest: +SKIP
    <devmap.Verified: the forward and the backward run under the map>
    """
    from .model import is_module, of_program

    module, inputs = of_program(module, inputs)
    if not is_module(module):
        raise DevmapError(f"verify: {type(module).__name__!r} is not a torch.nn.Module")
    if isinstance(map, (str, os.PathLike)):
        document = _read_map(map)
        map = Plan(json.dumps(document)) if document.get("format_version") == "devmap.plan/v1" else document.get("device_map", document)
    from . import verified

    if not isinstance(map, Plan):
        return verified.verify(module, _modules("verify", map), inputs, engine or "accelerate")
    engine = engine or ("torch" if map.strategy == "pipeline" else "accelerate")
    return verified.verify(module, verified.stages_of(map.document) if engine == "torch" else map.device_map, inputs, engine)


def inspect(model: object, *, inputs: Any = None, no_split: Any = None, **flags: Unpack[InspectFlags]) -> Inspection:
    """Lists the units of a model with their parameters, bytes, FLOPs and activation bytes.

    >>> import devmap
    >>> devmap.inspect("gpt2", seq=512).params
    124439808
    """
    call = _Call("inspect", model, inputs, no_split, flags)
    call.arguments.insert(1, "--json")
    return Inspection(json.loads(binary.run(call.arguments).stdout))


def watch(
    plan: Union[Plan, Path, None] = None,
    command: Optional[Sequence[str]] = None,
    *,
    pid: Optional[int] = None,
    strict: bool = False,
    baseline: bool = False,
    snapshot: Optional[Path] = None,
    report: Optional[Path] = None,
) -> Report:
    """Runs a command and compares the memory of its GPUs with a plan.

    command is a list of words: [sys.executable, "train.py"]. pid watches a process that runs already instead. What the
    command prints goes to stderr. strict raises DevmapError (status 4) if the verdict is "fail". baseline judges what
    the command leaves on the GPUs, and needs no plan. snapshot has torch write its memory snapshot. report names a file
    for a page with pictures.

    >>> import devmap, sys
    >>> plan = devmap.plan("gpt2", gpus=1)
    >>> devmap.watch(plan, [sys.executable, "train.py"])  # doctest: +SKIP
    <devmap.Report: pass, exit status 0>
    """
    import contextlib

    if (command is None) == (pid is None):
        raise UsageError("watch takes a command, as [sys.executable, 'train.py'], or pid=")
    if isinstance(command, str):
        raise UsageError(f"command={command!r}: give a list of words, as {command.split()!r}")
    typed = ["--json"]
    typed += ["--strict"] if strict else []
    typed += ["--baseline"] if baseline else []
    typed += [f"--snapshot={os.fspath(snapshot)}"] if snapshot is not None else []
    typed += [f"--report={os.fspath(report)}"] if report is not None else []
    typed += [f"--pid={pid}"] if pid is not None else []
    with contextlib.ExitStack() as stack:
        if isinstance(plan, Plan):
            typed.append(stack.enter_context(PlanFile(plan)))
        elif plan is not None:
            typed.append(os.fspath(plan))
        if command is not None:
            typed += ["--", *map(os.fspath, command)]
        ran = binary.run_loud(["watch", *typed])
    document = _document(ran)
    if document is None:
        raise ran.error()
    result = Report(document, ran.status)
    if strict and ran.status == 4 and result.verdict == "fail":
        raise DevmapError("the plan does not hold: " + "; ".join(result.reasons), 4, ran.command)
    return result


def export(
    module: Any,
    path: Optional[Path] = None,
    *,
    no_split: Optional[Iterable[Union[str, type]]] = None,
    inputs: Any = None,
    name: Optional[str] = None,
    values: Optional[Mapping[str, Any]] = None,
    steps: bool = True,
) -> dict[str, Any]:
    """Describes a torch.nn.Module as a model.json, writes it to path if one is given, and returns it as a dict.

    The module may be on any device; on the meta device it needs no memory. It is not changed and not run: a copy
    without memory runs one training forward, which shows its operations and what autograd keeps. A program of
    torch.export, or the name of its file (.pt2), is read the same way; it has its inputs with it.

    no_split: classes, or their names, of modules that one GPU holds whole. Without it the module's own
        _no_split_modules, as Transformers has them; else the members of its outermost lists.
    inputs: the arguments of one forward, as a tuple or a dict. Transformers models of text need none.
    name: the name of the model in tables.
    values: answers to questions about data by line, as measure has them; without, all that a mask could choose is taken.
    steps: whether to run steps on tensors without data for exact peaks. It takes seconds; without, peaks are sums of layers.

    >>> import devmap, torch  # doctest: +SKIP
    >>> model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())  # doctest: +SKIP
    >>> devmap.export(model, inputs=(torch.zeros(2, 8),))["format_version"]  # doctest: +SKIP
    'devmap.model/v1'
    """
    import importlib

    if path is not None and (os.path.isdir(path) or not os.path.isdir(os.path.dirname(os.path.abspath(path)))):
        raise DevmapError(f"export: {os.fspath(path)} cannot be written: it must be a file in a folder that exists")
    try:
        exporter = importlib.import_module(".exporter", __package__)
    except ImportError as err:
        if (err.name or "").partition(".")[0] != "torch":
            raise
        raise DevmapError("devmap.export describes a torch.nn.Module, and torch is not installed") from err
    document: dict[str, Any] = exporter.export(module, path, no_split=no_split, inputs=inputs, name=name, values=values, steps=steps)
    return document


def measure(
    fn: Callable[..., Any],
    *args: Any,
    gpu: str = "h200",
    gpus: int = 1,
    values: Optional[Mapping[str, Any]] = None,
    **kwargs: Any,
) -> Measured:
    """Runs fn(*args, **kwargs), a step of your own, on GPUs that are not there, and reports the memory that it takes.

    fn is any code that torch runs on "cuda": build the model, make the optimizer, train two steps. No GPU is used and
    no data is computed: tensors have sizes alone. Modules and tensors in args are copied, and not changed.

    gpu is a kind of NVIDIA GPU, as `devmap gpus` lists them, gpus how many "cuda:0", "cuda:1", … there are.

    values answers questions that the code asks of data, by line: {"train.py:42": 128}. Without an answer, a truth and a
    fraction are assumed, and listed in assumed; a whole number or a count raises DevmapError with the line.

    Memory that no rule follows, such as cuDNN's workspaces, is listed in unfollowed. docs/measure.md has the limits.

    >>> import devmap, torch  # doctest: +SKIP
    >>> def step():  # doctest: +SKIP
    ...     model = torch.nn.Linear(4096, 4096, device="cuda")
    ...     model(torch.randn(64, 4096, device="cuda")).sum().backward()
    >>> devmap.measure(step, gpu="h200").peaks  # doctest: +SKIP
    [203457536]
    """
    import importlib

    try:
        module = importlib.import_module(".measure", __package__)
    except ImportError as err:
        if (err.name or "").partition(".")[0] != "torch":
            raise
        raise DevmapError("devmap.measure runs code of torch, and torch is not installed") from err
    measured: Measured = module.measure(fn, *args, gpu=gpu, gpus=gpus, values=values, **kwargs)
    return measured
