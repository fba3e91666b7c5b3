"""Settings as Hugging Face users write them, as keywords of devmap: dtype=, args=, peft_config=, max_memory=, ….

Objects of torch, Transformers, PEFT and Accelerate are read by their attributes: none of these packages is imported.
"""

# pyright: basic, reportMissingImports=false

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any, Optional, TypedDict, Union

from .errors import DevmapError, UsageError


class Settings(TypedDict, total=False):
    """Keywords that hold settings of Hugging Face libraries. Each stands for keywords of devmap, which win over args.

    dtype: type of the weights, as in from_pretrained: torch.bfloat16, "float32", ….
    args: a TrainingArguments: batch size, accumulation, checkpointing, optimizer, precision, DeepSpeed, FSDP.
    peft_config: a LoraConfig.
    quantization_config: a BitsAndBytesConfig.
    gradient_checkpointing: True recomputes activations in the backward pass.
    max_memory: what Accelerate takes: {0: "24GiB", 1: "24GiB"}.
    architecture: the class that is loaded, BertForSequenceClassification say, if the config names another.
    download: fetches the config of a Hub model into the local cache first; needs huggingface_hub.
    """

    dtype: Any
    torch_dtype: Any
    args: Any
    peft_config: Any
    quantization_config: Any
    gradient_checkpointing: Optional[bool]
    max_memory: Optional[Mapping[Any, Union[int, str]]]
    architecture: Union[str, type, None]
    download: Optional[bool]


class Translated:
    """Keywords of the program, and what the model has to be asked for before the precision is known."""

    def __init__(self, command: str, flags: Mapping[str, Any]) -> None:
        self.flags = {name: value for name, value in flags.items() if value is not None}
        self.notes: list[str] = []
        self.architecture = _class_name(self.flags.pop("architecture", None))
        self.download = bool(self.flags.pop("download", False))
        self.autocast = ""  # "bf16" or "16": the precision is mixed unless the weights have that type
        args = self.flags.pop("args", None)
        self._dtype()
        self._max_memory()
        for name in ("peft_config", "quantization_config", "gradient_checkpointing"):
            if name in self.flags:
                self._add(name, getattr(self, "_" + name)(self.flags.pop(name)))
        self._gpus(command)
        if args is not None:
            found, self.autocast = training_flags(args)
            for name, value in found.items():
                self.flags.setdefault(name, value)
            if "ds_config" in self.flags:  # it has the precision and the strategy
                self.autocast = ""
            self._mixed(self.flags.get("precision"))

    def _add(self, said: str, flags: Mapping[str, object]) -> None:
        for name, value in flags.items():
            if self.flags.get(name, value) != value:
                raise UsageError(f"{said} means {name}={value!r}, and {name}={self.flags[name]!r} is given too")
            self.flags[name] = value

    def _dtype(self) -> None:
        for name in ("dtype", "torch_dtype"):
            if name not in self.flags:
                continue
            precision = dtype_precision(name, self.flags.pop(name))
            if precision:
                self._add(name, {"precision": precision})

    def _mixed(self, stored: object) -> None:
        """The precision of a Trainer, from its autocast and the type of the weights (docs/presets.md).

        Accelerate's FSDP2 makes trained weights fp32, and PEFT adapters; else bf16 weights stay as they are.
        """
        if self.autocast and stored is not None:
            mixed = self.autocast + "-mixed"
            trainer = self.flags.get("preset") != "accelerate-loop"
            cast = trainer and (self.flags.get("strategy") in ("fsdp", "hsdp") or "lora_rank" in self.flags)
            self.flags["precision"] = stored if stored == mixed or stored == "bf16-true" and not cast else mixed
            self.autocast = ""

    def stored(self, precision: str) -> None:
        """Settles the precision of a Trainer when the program has told the type of the weights."""
        self._mixed(precision)

    def _max_memory(self) -> None:
        name = "max_memory"
        if name not in self.flags and isinstance(self.flags.get("gpus"), Mapping):
            name = "gpus"
        if name not in self.flags:
            return
        limits = self.flags.pop(name)
        if "gpus" in self.flags:
            raise UsageError("max_memory and gpus both say how large the GPUs are: give one of them")
        if not isinstance(limits, Mapping) or not limits:
            raise UsageError(f"{name}={limits!r}: write {name}={{0: '24GiB', 1: '24GiB'}}")
        for key in limits:
            if key in ("cpu", "disk"):
                raise UsageError(
                    f"{name}[{key!r}]: devmap does not limit the host: leave it out (offload={key!r} offloads layers)"
                )
        if sorted(limits, key=str) != sorted(range(len(limits)), key=str):
            raise UsageError(f"{name}: its keys are {list(limits)}: number the GPUs from 0 without a gap")
        self.flags["gpus"] = [limits[number] for number in range(len(limits))]

    def _gpus(self, command: str) -> None:
        gpus = self.flags.get("gpus")
        if gpus == "auto":
            self.flags.update(found_gpus(self.flags))
        elif isinstance(gpus, (list, tuple)):
            small = [size for size in gpus if isinstance(size, int) and 0 < size < 1 << 20]
            if small:
                sizes = ", ".join(repr(f"{size}GiB" if isinstance(size, int) else size) for size in gpus)
                raise UsageError(f"gpus={list(gpus)!r}: numbers in a list are bytes: write gpus=[{sizes}]")
        if isinstance(self.flags.get("gpu"), str):
            self.flags["gpu"] = catalogue_gpu(self.flags["gpu"])

    @staticmethod
    def _gradient_checkpointing(value: object) -> dict[str, object]:
        if not isinstance(value, bool):
            raise UsageError(f"gradient_checkpointing={value!r}: it is True or False")
        return {"recompute": "full" if value else "none"}

    @staticmethod
    def _peft_config(config: Any) -> dict[str, object]:
        kind = str(getattr(getattr(config, "peft_type", None), "value", getattr(config, "peft_type", "")))
        if kind != "LORA":
            raise UsageError(f"peft_config is a {type(config).__name__}: devmap counts LoraConfig")
        for name in _UNCOUNTED:
            if getattr(config, name, None):
                raise UsageError(
                    f"peft_config has {name}, which devmap does not count: lora_rank={config.r} with lora_targets=[…] "
                    "plans the adapters without it"
                )
        if getattr(config, "bias", "none") != "none":
            raise UsageError(f"peft_config has bias={config.bias!r}, and devmap counts bias='none'")
        flags: dict[str, object] = {"lora_rank": int(config.r)}
        targets = config.target_modules
        if isinstance(targets, str) and targets != "all-linear":
            raise UsageError(f"peft_config has the pattern target_modules={targets!r}: devmap takes a list of names")
        if targets:
            flags["lora_targets"] = targets if isinstance(targets, str) else sorted(targets)
        return flags

    def _quantization_config(self, config: Any) -> dict[str, object]:
        get = config.get if isinstance(config, Mapping) else lambda name, other=None: getattr(config, name, other)
        if get("load_in_8bit"):
            return {"quantize": "int8"}
        if not get("load_in_4bit"):
            raise UsageError(
                f"quantization_config is a {type(config).__name__} without load_in_4bit or load_in_8bit: devmap reads "
                "how a quantised checkpoint is stored from its own config, so leave it out"
            )
        if not get("bnb_4bit_use_double_quant"):
            self.notes.append(
                "quantization_config has no bnb_4bit_use_double_quant=True, which the plan counts: without it 4-bit "
                "weights need 0.047 bytes a parameter more"
            )
        return {"quantize": "nf4"}


# Fields of a LoraConfig that change which weights exist.
_UNCOUNTED = (
    "use_dora", "modules_to_save", "rank_pattern", "layers_to_transform", "target_parameters", "layer_replication",
    "trainable_token_indices", "exclude_modules",
)  # fmt: skip

_DTYPES = {
    "bfloat16": "bf16-true", "bf16": "bf16-true", "float16": "16-true", "fp16": "16-true", "half": "16-true",
    "float32": "32-true", "fp32": "32-true", "float": "32-true",
}  # fmt: skip


def dtype_precision(name: str, dtype: object) -> str | None:
    """The precision of weights of a type; None for "auto", which is the checkpoint's own type."""
    text = str(dtype).replace("torch.", "")
    if text == "auto":
        return None
    if text not in _DTYPES:
        raise UsageError(f"{name}={text}: devmap plans float32, bfloat16 and float16")
    return _DTYPES[text]


# Optimizers of the Trainer, as TrainingArguments.optim names them, by devmap's names.
OPTIMIZERS = {
    "adamw_torch_fused": "adamw", "adamw_torch": "adamw-foreach", "adamw_hf": "adamw-foreach", "sgd": "sgd",
    "adamw_bnb_8bit": "adamw-8bit", "adamw_8bit": "adamw-8bit", "adafactor": "adafactor",
}  # fmt: skip


def optimizer_of(args: Any) -> tuple[str, str | None]:
    """The optimizer of TrainingArguments: its name there, and devmap's name; None if devmap does not count it."""
    name = str(getattr(args.optim, "value", args.optim))
    return name, OPTIMIZERS.get(name)


def training_flags(args: Any) -> tuple[dict[str, Any], str]:
    """The keywords that TrainingArguments stand for, and the type of their autocast."""
    name, optimizer = optimizer_of(args)
    if optimizer is None:
        raise UsageError(f"args has optim={name!r}, which devmap does not count: it counts {', '.join(OPTIMIZERS)}")
    accumulated = int(args.gradient_accumulation_steps)
    flags: dict[str, Any] = {
        "mode": "train",
        "batch": int(args.per_device_train_batch_size) * accumulated,
        "micro_batches": accumulated,
        "optimizer": optimizer,
        "recompute": "full" if args.gradient_checkpointing else "none",
    }
    if getattr(args, "use_liger_kernel", False):
        flags["loss"] = "fused"
    if getattr(args, "deepspeed", None):
        flags["ds_config"] = args.deepspeed
        del flags["optimizer"]
    elif getattr(args, "fsdp", None):
        flags["strategy"] = "hsdp" if "hybrid" in str(args.fsdp) else "fsdp"
    if any(kind.__name__ == "SFTConfig" for kind in type(args).__mro__) and isinstance(args.max_length, int):
        flags["seq"] = args.max_length
    return flags, "bf16" if args.bf16 else "16" if args.fp16 else ""


def _class_name(architecture: object) -> str:
    if architecture is None or isinstance(architecture, str):
        return architecture or ""
    if isinstance(architecture, type):
        return architecture.__name__
    raise UsageError(f"architecture={architecture!r}: give a class, or its name")


def found_gpus(flags: Mapping[str, Any]) -> dict[str, object]:
    """The GPUs that torch sees, as keywords; none without torch, so that the program looks for them."""
    torch = _torch()
    if torch is None:
        return {}
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if not count:
        raise UsageError("gpus='auto': torch sees no GPU here: say which to plan for, as gpus=4, gpu='h100-80gb'")
    seen = [torch.cuda.get_device_properties(number) for number in range(count)]
    out: dict[str, object] = {"gpus": [int(one.total_memory) for one in seen]}
    if "gpu" not in flags:
        names = {catalogue_gpu(one.name, int(one.total_memory)) for one in seen}
        if len(names) > 1:
            raise UsageError(f"gpus='auto': the GPUs differ ({', '.join(sorted(names))}): write a topology file")
        name = names.pop()
        if name in _known_gpus():
            out["gpu"] = name
    return out


def _torch() -> Any:
    """torch if the program has imported it, or can."""
    if "torch" in sys.modules:
        return sys.modules["torch"]
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        return None
    return torch


def _known_gpus() -> tuple[str, ...]:
    from .flags import VALUES

    return VALUES["gpu"]


# Words in the names of drivers that do not tell one GPU from another.
_FORMS = frozenset(
    "nvidia geforce tesla quadro amd instinct rtx gpu graphics generation blackwell server workstation edition sxm "
    "sxm2 sxm3 sxm4 sxm5 sxm6 pcie hbm2 hbm2e hbm3 hbm3e nvl oam ac 480gb".split()  # GH200 480GB: of the host
)


def catalogue_gpu(name: str, total: int = 0) -> str:
    """The catalogue's name for what torch.cuda.get_device_name() returns; any other name as it is.

    >>> catalogue_gpu("NVIDIA A100-SXM4-80GB"), catalogue_gpu("NVIDIA GeForce RTX 4090"), catalogue_gpu("h100")
    ('a100-80gb', 'rtx-4090', 'h100')
    """
    known = _known_gpus()
    words = [word for word in re.split(r"[\s_-]+", name.lower()) if word not in _FORMS]
    if name in known or not words or not re.search(r"nvidia|geforce|tesla|quadro|amd", name.lower()):
        return name
    total = total or _total(name)
    fit: list[str] = []
    for gpu in known:
        have = gpu.split("-")
        size = [word for word in have if re.fullmatch(r"\d+gb", word)]
        model = [word for word in have if word not in size and word not in _FORMS]
        said = [word for word in words if re.fullmatch(r"\d+gb", word)]
        if model != [word for word in words if word not in said] or size and said and size != said:
            continue
        if total and size and abs(total / 2**30 / int(size[0][:-2]) - 1) > 0.05:
            continue
        fit.append(gpu)
    if len(fit) > 1:
        raise UsageError(f"gpu={name!r} may be {' or '.join(fit)}: give one of these names")
    return fit[0] if fit else name


def _total(name: str) -> int:
    """The memory of a GPU of this name on this machine; 0 if there is none or torch is not in use."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    for number in range(torch.cuda.device_count()):
        if torch.cuda.get_device_properties(number).name == name:
            return int(torch.cuda.get_device_properties(number).total_memory)
    return 0


def downloaded(model: object) -> str:
    """The folder of a Hub model's configs in the local cache, fetched if they are not there."""
    if not isinstance(model, str) or os.path.exists(model):
        raise UsageError("download=True is for the name of a model on the Hub, as 'Qwen/Qwen2.5-3B'")
    try:
        from huggingface_hub import snapshot_download  # type: ignore[import-not-found,unused-ignore]
    except ImportError as err:
        raise UsageError("download=True needs huggingface_hub: pip install huggingface_hub") from err
    patterns = ["config.json", "*/config.json", "*.index.json", "model_index.json", "adapter_config.json"]
    try:
        return str(snapshot_download(model, allow_patterns=patterns))
    except Exception as err:  # of the network, of the Hub, of the cache
        raise DevmapError(f"{model} could not be fetched from the Hub: {err}") from err
