"""Does PyTorch hold on every GPU what devmap predicted?

Builds the plan's model with random weights, runs some steps, and prints the peaks beside those of the plan.
Exit status 0: within the bound; 4: outside; 1: it could not run.

Run: python3 FILE
"""

import argparse
import contextlib
import ctypes
import json
import os
import sys

import torch
import transformers

JOB = json.loads(r"""{
 "model": "small",
 "params": 0,
 "what": "training 4 × 32 tokens, bf16-true, adamw, recompute none, device-map over 2 GPUs (h200-141gb)",
 "bound": 0.01,
 "mode": "train",
 "strategy": "device-map",
 "batch": 4,
 "micro_batches": 1,
 "seq": 32,
 "new_tokens": 0,
 "precision": "bf16-true",
 "optimizer": "adamw",
 "recompute": "none",
 "attention": "sdpa",
 "loss_only": false,
 "gradient_as_bucket_view": false,
 "lora_rank": 0,
 "lora_targets": [],
 "lora_precision": "",
 "shard_degree": 0,
 "schedule": "",
 "device_map": {
  "model.embed_tokens": 0,
  "model.layers.0": 0,
  "model.layers.1": 1,
  "model.norm": 1,
  "lm_head": 0
 },
 "stages": [],
 "imbalance": 1,
 "devices": [
  {
   "peak_allocated_bytes": 7516192768,
   "peak_range_bytes": [
    7516192768,
    7516192768
   ],
   "slack_bytes": [
    0,
    1073741824
   ],
   "device_used_bytes": 8589934592
  },
  {
   "peak_allocated_bytes": 7516192768,
   "peak_range_bytes": [
    7516192768,
    7516192768
   ],
   "slack_bytes": [
    0,
    1073741824
   ],
   "device_used_bytes": 8589934592
  }
 ],
 "notes": [
  "a \"note\" with \"\"\" and \\ and\nlines"
 ]
}""")
CONFIG = json.loads(r"""{
 "model_type": "llama",
 "architectures": [
  "LlamaForCausalLM"
 ],
 "vocab_size": 500
}""")

DTYPES = {"bf16-true": torch.bfloat16, "16-true": torch.float16, "32-true": torch.float32, "bf16-mixed": torch.float32, "16-mixed": torch.float32}
MIXED = {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}.get(JOB["precision"])


def line(text):
    """Text of the plan on one line: nothing in it steers a terminal."""
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)


def asked():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rank", type=int, help="run this rank of all on one GPU, as torch's fake process group has it")
    parser.add_argument("--steps", type=int, default=3, help="steps to run (3); what is predicted holds from the second on")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: go through the steps, and measure nothing")
    parser.add_argument("--json", metavar="FILE", help="write the figures to a file too")
    return parser.parse_args()


# The model: its own code, random weights made where they are to lie.


@contextlib.contextmanager
def weightless():
    """Parameters that modules register have no storage; buffers are computed as ever."""
    register = torch.nn.Module.register_parameter

    def without(module, name, parameter):
        register(module, name, parameter)
        if parameter is not None:
            module._parameters[name] = torch.nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)

    torch.nn.Module.register_parameter = without
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = register


def built():
    """The model that the config describes, without storage."""
    fields = {name: value for name, value in CONFIG.items() if name not in ("model_type", "architectures", "transformers_version", "dtype", "torch_dtype")}
    if CONFIG["model_type"] not in transformers.CONFIG_MAPPING:
        sys.exit(line(f"Transformers {transformers.__version__} has no {CONFIG['model_type']}"))
    config = transformers.AutoConfig.for_model(CONFIG["model_type"], **fields)
    config.use_cache = JOB["mode"] != "train"
    with weightless():
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=DTYPES[JOB["precision"]], attn_implementation=JOB["attention"])
    model.tie_weights()
    count = sum(parameter.numel() for parameter in model.parameters())
    if count != JOB["params"]:
        sys.exit(f"Transformers {transformers.__version__} builds {count} parameters of the config, and the plan is for {JOB['params']}")
    return model.train(JOB["mode"] == "train")


def drawn(model, place):
    """Gives every parameter random values on the device that place says for its name; tied ones stay one."""
    made = {}
    for path, module in model.named_modules():
        for name, old in module._parameters.items():
            if old is None:
                continue
            if id(old) not in made:
                values = torch.empty(old.shape, dtype=old.dtype, device=place(f"{path}.{name}" if path else name))
                if values.is_floating_point():
                    values.normal_(0, 0.02)
                made[id(old)] = old, torch.nn.Parameter(values, requires_grad=old.requires_grad)
            module._parameters[name] = made[id(old)][1]
    return model


def adapted(model):
    """With the adapters that the plan trains, where it has any."""
    if not JOB["lora_rank"]:
        return model
    import peft

    targets = JOB["lora_targets"][0] if JOB["lora_targets"] == ["all-linear"] else JOB["lora_targets"]
    settings = peft.LoraConfig(r=JOB["lora_rank"], target_modules=targets, lora_dropout=0.0, task_type="CAUSAL_LM")
    return peft.get_peft_model(model, settings, autocast_adapter_dtype=JOB["lora_precision"] == "fp32")


def optimizer_of(parameters, device):
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    name = JOB["optimizer"]
    if name == "adamw-8bit":
        import bitsandbytes

        return bitsandbytes.optim.AdamW8bit(parameters, lr=1e-5)
    if name.startswith("adamw"):
        fused = name == "adamw" and device == "cuda"
        return torch.optim.AdamW(parameters, lr=1e-5, fused=fused, foreach=not fused)
    return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9 if name == "sgd-momentum" else 0)


def autocast(device):
    """Mixed precision, where it is not FSDP's own policy."""
    return torch.autocast(device, MIXED) if MIXED and JOB["strategy"] not in ("fsdp", "hsdp") else contextlib.nullcontext()


def batch(config, device, sequences):
    return torch.randint(0, config.vocab_size, (sequences, JOB["seq"]), device=device)


def training(model, optimizer, ids, device):
    """What is one step: forward, backward, update; then the gradients are dropped. The caller keeps of the outputs what the
    plan says, until the step's end."""
    scaler = torch.amp.GradScaler(device, enabled=JOB["precision"] == "16-mixed")
    parts = ids.chunk(JOB["micro_batches"])

    def step():
        for part in parts:
            kept = None
            with autocast(device):
                if JOB["loss_only"]:
                    loss = model(input_ids=part, labels=part, use_cache=False).loss
                else:
                    kept = model(input_ids=part, labels=part, use_cache=False)
                    loss = kept.loss
            scaler.scale(loss / len(parts) if len(parts) > 1 else loss).backward()
            del loss
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        del kept

    return step


# What GPUs hold.


class Memory(ctypes.Structure):
    """nvmlMemory_t (NVML API reference)."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def uuid(index):
    """Of a GPU as CUDA numbers them, which heeds CUDA_VISIBLE_DEVICES; nothing is made on it."""
    driver, device, found = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), (ctypes.c_ubyte * 16)()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), index) or driver.cuDeviceGetUuid(found, device):
        raise OSError("no CUDA device " + str(index))
    text = bytes(found).hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def shown(count, first=0):
    """Bytes in use of GPUs as nvidia-smi shows them; None where the driver's library does not tell."""
    try:
        nvml, used = ctypes.CDLL("libnvidia-ml.so.1"), []
        for index in range(first, first + count):
            device, memory = ctypes.c_void_p(), Memory()
            if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByUUID(uuid(index).encode(), ctypes.byref(device)) or nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)):
                return [None] * count
            used.append(memory.used)
        return used
    except (OSError, AttributeError):
        return [None] * count


def measured(before, first=0):
    """Peaks of the GPUs since they were last reset, and what each holds more than before."""
    rows = []
    for index in range(first, first + len(before)):
        torch.cuda.synchronize(index)
    for index, (then, now) in enumerate(zip(before, shown(len(before), first)), first):
        rows.append({
            "allocated_peak_bytes": torch.cuda.max_memory_allocated(index), "reserved_peak_bytes": torch.cuda.max_memory_reserved(index),
            "nvml_bytes": None if then is None or now is None else now - then, "name": torch.cuda.get_device_name(index),
        })
    return rows


def judged(rows):
    """Prints what was measured beside what was predicted; the exit status: 4 where a peak is outside its bound."""
    gib = 1 << 30
    print(line(f"{JOB['model']}, {JOB['what']}"))
    print(f"on {', '.join(sorted({row['name'] for row in rows}))}; torch {torch.__version__}, transformers {transformers.__version__}; allowed: {100 * JOB['bound']:g} %")
    print("       allocated peak, GiB                reserved peak, GiB           NVML, GiB beyond before")
    print("GPU    predicted   measured        off    predicted        measured    predicted   measured")
    outside = []
    for row in rows:
        told = JOB["devices"][row["device"]]
        low, high = told["peak_range_bytes"]
        peak = row["allocated_peak_bytes"]
        row["off"] = peak / low - 1 if peak < low else max(0.0, peak / high - 1)
        reserved = " – ".join(f"{(told['peak_allocated_bytes'] + slack) / gib:.2f}" for slack in told["slack_bytes"])
        nvml = "unknown" if row["nvml_bytes"] is None else f"{row['nvml_bytes'] / gib:.2f}"
        width = f"{low / gib:.3f}" if low == high else f"{low / gib:.2f} – {high / gib:.2f}"
        print(f"{row['device']:<5} {width:>10} {peak / gib:>10.3f} {100 * row['off']:>+9.3f} % {reserved:>12} {row['reserved_peak_bytes'] / gib:>15.2f} {told['device_used_bytes'] / gib:>12.2f} {nvml:>10}")
        if abs(row["off"]) > JOB["bound"]:
            outside.append(f"GPU {row['device']}: {100 * row['off']:+.3f} %")
    peaks = [row["allocated_peak_bytes"] for row in rows]
    if len(peaks) > 1:
        print(f"largest peak / mean: {max(peaks) * len(peaks) / sum(peaks):.3f}, predicted {JOB['imbalance']:.3f}")
    for note in JOB["notes"]:
        print("note:", line(note))
    print("outside the bound: " + "; ".join(outside) if outside else "within the bound")
    return 4 if outside else 0


# A map over the GPUs of one process, by Accelerate's hooks.


def placed(model, device):
    """The model on its devices."""
    import accelerate

    where = {path: index if device == "cuda" else "cpu" for path, index in JOB["device_map"].items()}

    def place(name):
        return where[max((path for path in where if path in ("", name) or name.startswith(path + ".")), key=len)]

    drawn(model, place)
    if device == "cpu":
        return accelerate.dispatch_model(model, device_map=where, main_device="cpu", force_hooks=True)
    return accelerate.dispatch_model(model, device_map=where)


def work(device):
    """What is done again and again: a step, a forward, or generation."""
    model = placed(built(), device)
    if JOB["mode"] == "load":
        return lambda: None
    ids = batch(model.config, f"{device}:0" if device == "cuda" else device, JOB["batch"])
    if JOB["mode"] == "train":
        model = adapted(model)
        if JOB["recompute"] == "full":
            if JOB["lora_rank"]:
                model.enable_input_require_grads()
            model.gradient_checkpointing_enable()
        return training(model.train(), optimizer_of(model.parameters(), device), ids, device)

    @torch.no_grad()
    def forward():
        with autocast(device):
            if JOB["new_tokens"]:
                model.generate(input_ids=ids, max_new_tokens=JOB["new_tokens"], min_new_tokens=JOB["new_tokens"], do_sample=False, pad_token_id=0)
            else:
                model(input_ids=ids, use_cache=True)

    return forward


def run(args):
    count = len(JOB["devices"])
    if args.rank is not None:
        sys.exit("--rank: one process runs all GPUs of a device map")
    if args.device == "cuda" and torch.cuda.device_count() < count:
        sys.exit(f"the plan is for {count} GPUs, and CUDA shows {torch.cuda.device_count()}")
    before = shown(count) if args.device == "cuda" else []
    step = work(args.device)
    if args.device == "cuda":
        for index in range(count):
            torch.cuda.reset_peak_memory_stats(index)
    for _ in range(args.steps):
        step()
    return [row | {"device": index} for index, row in enumerate(measured(before))]


def main():
    args = asked()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("no CUDA device here: --device cpu goes through the steps and measures nothing")
    torch.manual_seed(0)
    try:
        rows = run(args)
    except torch.OutOfMemoryError as err:
        sys.exit(f"out of memory before the steps were through, which says nothing of the plan where others hold memory of the GPU: {err}")
    status = 0
    if args.device == "cuda":
        status = judged(rows)
    else:
        print(line(f"{JOB['model']}, {JOB['what']}: {args.steps} steps on the CPU, nothing is measured"))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"model": JOB["model"], "status": status, "bound": JOB["bound"], "torch": torch.__version__, "transformers": transformers.__version__, "predicted": JOB["devices"], "measured": rows}, file)
    sys.stdout.flush()
    sys.exit(status)


if __name__ == "__main__":
    main()
