"""Drawn models of every family: conformance's sections, carried out on the GPU, and bf16 held to PyTorch's own."""

import functools
import json
import os

from shared import apart  # sets the path

import torch
from safetensors.torch import load_file

import draw
import models
import outputs
import sameness
import training
from conform import Bench

ROUNDED, ATTENTION = 2.0, 3.0


class Part(Bench):
    """What a section of conformance needs, of some families, in a folder of its own."""

    def __init__(self, shared, figures, name, families, draws):
        self.engine, self.figures = shared.engine(name), figures
        self.root, self.seed, self.draws, self.keep, self.models, self.families = shared.root, shared.seed, draws, "", [], families


def sections(shared, figures, name, among, calls):
    """Each section of each family, side by side: nothing is timed."""
    def task(call, draws, family, own, ledger):
        part = Part(shared, own, f"{name}-{call.__name__}-{family}", [family], draws)
        part.engine.spent = ledger
        call(part)
        return part.engine.verdicts

    tasks = [functools.partial(task, call, draws, family) for call, draws in calls for family in among]
    runs = apart(figures, shared.spent, tasks)
    failed = [why for why in runs if why]
    figures.same(name, "verdicts", len(runs) - len(failed), len(runs), failed[0] if failed else "")


def logits(shared, figures):
    """fp32 beside PyTorch's, bf16 beside what PyTorch's bf16 is from fp32, greedy tokens."""
    draws = 1 if shared.small else shared.draws
    sections(shared, figures, "logits", draw.FAMILIES, ((outputs.logits, draws), (outputs.rounding, draws), (sameness.decode, 1)))


def gradients(shared, figures):
    """fp32 beside PyTorch's, bf16 beside what PyTorch's bf16 is from fp32, losses of ten steps."""
    draws = 1 if shared.small else shared.draws
    calls = ((exact, draws), (rounded, draws)) if shared.small else ((exact, draws), (rounded, draws), (training.losses, 1))
    sections(shared, figures, "gradients", draw.TRAINED, calls)


def exact(part):
    for family in part.families:
        for index in range(part.draws):
            training.fp32(part, family, index)
        part.clear()


def split(tensors):
    """Gradients of attention, and the others: of what stands before attention too, through which they come."""
    attention = {name: tensor for name, tensor in tensors.items() if "attn" in name or "attention" in name}
    return {"attention": attention, "others": {name: tensor for name, tensor in tensors.items() if name not in attention}}


def whole(tensors, reference):
    """‖difference‖ / ‖reference‖ of gradients as one vector."""
    apart = sum((tensors[name].double() - reference[name].double()).square().sum().item() for name in reference)
    return (apart / sum(reference[name].double().square().sum().item() for name in reference)) ** 0.5


def rounded(part):
    for family in part.families:
        for index in range(part.draws):
            with part.figures.attempt("gradients", f"{family} {index} bf16"):
                folder, model, ids = training.small(part, family, index, "bf16-true")
                way = training.job(ids, index, precision="bf16-true")
                reference = split(training.gradients_of(models.loaded(folder, torch.float32), ids[:4]))
                theirs = split(training.gradients_of(model, ids[:4]))
                ours = split(load_file(part.engine.planned(folder, way, dumps=("grads",), tokens=ids).files["grads"]))
                for kind, times in (("attention", ATTENTION), ("others", ROUNDED)):
                    own = whole(theirs[kind], reference[kind])
                    part.figures.within("gradients bf16", f"{family} {index} {kind}: {way}", whole(ours[kind], reference[kind]) / own, times, f"PyTorch's bf16 is {own:.1e} from fp32")
        part.clear()


WIDTHS = ("llama-3.2-1b", "mistral-7b-v0.1", "qwen2.5-0.5b", "qwen3-8b", "gemma-2b", "gemma-2-9b", "gemma-3-1b", "phi-3-mini", "gpt2", "bert-large")


def widths(shared, figures):
    """Real widths, each with two layers and a part of its vocabulary: logits and gradients, fp32 and bf16."""
    def one(name):
        with figures.attempt("widths", name):
            folder = os.path.join(shared.folder, "widths-" + name)
            os.makedirs(folder)
            for line in shared.python("widths.py", shared.binary, shared.kind, shared.models, shared.seed, folder, name).splitlines():
                figures.within(*json.loads(line))

    shared.beside([functools.partial(one, name) for name in (WIDTHS[:2] if shared.small else WIDTHS)], at_once=4)
