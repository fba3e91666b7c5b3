"""Gradients, and the losses of ten steps, beside PyTorch's own loop."""

import copy
import random

import numpy
import torch
from safetensors.torch import load_file

import draw
import models
from engine import Job

WHOLE, NORM, LOSS = 1e-4, 1e-5, 2e-5
ROUNDED = 3.0  # of gradients, as FlashAttention asks of its own
STEPS = 10


def small(bench, family, index, precision="32-true"):
    """A drawn configuration: folder, model, lines of tokens, of which a batch is four."""
    rng = random.Random(f"{bench.seed}/train/{family}/{index}/{precision}")
    fields, seq = draw.case(family, rng, index)
    if precision != "32-true":  # a gate on the other side of a kink doubles the distance of all gradients before it
        fields = draw.smooth(fields)
    folder = bench.engine.place(family)
    model = models.saved(models.config_of(fields), rng.randrange(1 << 30), folder, precision)
    return folder, model, models.drawn_ids(rng.randrange(1 << 30), 10, seq, fields["vocab_size"])


def job(ids, index, **over):
    """Micro-batches, devices and recompute by turns."""
    ways = (
        {}, {"gpus": 2, "strategy": "pipeline", "micro_batches": 4}, {"micro_batches": 2}, {"gpus": 3, "strategy": "pipeline", "micro_batches": 2, "recompute": "full"},
        {"gpus": 2, "recompute": "full"},
    )
    return Job(**{"mode": "train", "batch": 4, "seq": ids.shape[1], "precision": "32-true"} | ways[index % len(ways)] | over)


def loss_of(model, lines):
    ids = torch.as_tensor(lines)
    return model(input_ids=ids, labels=ids, use_cache=False).loss


def gradients_of(model, lines):
    model.zero_grad(set_to_none=True)
    loss_of(model, lines).backward()
    return {name: weight.grad.float() for name, weight in model.named_parameters()}


def compared(ours, theirs):
    """Of all gradients as one vector, of their norm, and of the parameter that differs most: a gradient of nearly
    nothing is held to what the others are."""
    if sorted(ours) != sorted(theirs):
        raise ValueError(f"gradients of {sorted(set(ours) ^ set(theirs))} are on one side alone")
    for name, theirs_of in theirs.items():
        if ours[name].shape != theirs_of.shape:
            raise ValueError(f"the gradient of {name} is {list(ours[name].shape)}, and the reference's {list(theirs_of.shape)}")
    norm = {name: theirs[name].double().norm().item() for name in theirs}
    apart = {name: (ours[name].double() - theirs[name].double()).norm().item() for name in theirs}
    whole = numpy.linalg.norm(list(norm.values()))
    own = numpy.linalg.norm([ours[name].double().norm().item() for name in theirs])
    share = {name: apart[name] / max(norm[name], 1e-4 * whole) for name in theirs}
    worst = max(share, key=share.get)
    return numpy.linalg.norm(list(apart.values())) / whole, abs(own - whole) / whole, share[worst], worst


def gradients(bench):
    """Of the mean over the batch, one a parameter, in fp32; in bf16 beside PyTorch's bf16."""
    for family in bench.among(draw.TRAINED):
        for index in range(bench.draws):
            fp32(bench, family, index)
        with bench.figures.attempt("gradients", f"{family} bf16"):
            folder, model, ids = small(bench, family, 0, "bf16-true")
            way = job(ids, 0, precision="bf16-true")
            reference = gradients_of(models.loaded(folder, torch.float32), ids[:4])
            bar = ROUNDED * compared(gradients_of(model, ids[:4]), reference)[0]
            ran = bench.engine.planned(folder, way, dumps=("grads",), tokens=ids)
            bench.figures.within("gradients", f"{family} bf16: {way}", compared(load_file(ran.files["grads"]), reference)[0], bar, bench.cause(folder))
        bench.clear()


def fp32(bench, family, index):
    """Gradients of a drawn configuration: all, their norm, the parameter that differs most."""
    with bench.figures.attempt("gradients", f"{family} {index}"):
        folder, model, ids = small(bench, family, index)
        way = job(ids, index)
        theirs = gradients_of(model, ids[:4])
        ran = bench.engine.planned(folder, way, "--lr", "1e-3", dumps=("grads",), tokens=ids)
        whole, norm, worst, name = compared(load_file(ran.files["grads"]), theirs)
        case = f"{family} {index}: {way}"
        own = compared(theirs, gradients_of(model.double(), ids[:4]))
        bench.figures.within("gradients", case, whole, WHOLE, f"PyTorch's fp32 is {own[0]:.1e} from its fp64 {bench.cause(folder)}")
        bench.figures.within("gradients", case + ": norm", norm, NORM)
        bench.figures.within("gradients", case + ": worst", worst, WHOLE, name)
    bench.clear()


# What an optimizer is asked for: devmap's flags, and PyTorch's own optimizer with the same.
ADAMW = {"lr": 3e-3, "betas": (0.8, 0.99), "eps": 1e-6, "weight_decay": 0.1}
WAYS = (
    ("adamw", (), lambda weights: torch.optim.AdamW(weights, lr=1e-3, weight_decay=0.01, fused=False, foreach=False), 0),
    ("sgd", ("--lr", "0.05", "--weight-decay", "0.05"), lambda weights: torch.optim.SGD(weights, lr=0.05, weight_decay=0.05, fused=False, foreach=False), 0),
    ("adamw", ("--lr", "3e-3", "--betas", "0.8,0.99", "--eps", "1e-6", "--weight-decay", "0.1", "--clip", "0.3"),
     lambda weights: torch.optim.AdamW(weights, fused=False, foreach=False, **ADAMW), 0.3),
    ("sgd", ("--lr", "0.2", "--weight-decay", "0", "--clip", "0.5"), lambda weights: torch.optim.SGD(weights, lr=0.2, fused=False, foreach=False), 0.5),
)


def trained(model, lines, batch, steps, make, clip):
    """Losses of steps, each before its update; a step takes the next lines, from the start again when they end."""
    optimizer, losses = make(model.parameters()), []
    for step in range(steps):
        rows = [(step * batch + k) % len(lines) for k in range(batch)]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, lines[rows])
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip, foreach=False)
        optimizer.step()
        losses.append(loss.item())
    return losses


def furthest(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def steady(bench, family, index, make, clip):
    """A drawn configuration whose ten steps do not blow rounding up: one is drawn again where PyTorch's own fp32 is
    further from its fp64 than an eighth of the bar. Folder, model after the steps, tokens, losses, that distance."""
    for again in range(8):
        folder, model, ids = small(bench, family, 4 * (index + len(WAYS) * again))
        exact = trained(copy.deepcopy(model).double(), ids, 4, STEPS, make, clip)
        theirs = trained(model, ids, 4, STEPS, make, clip)
        own = furthest(theirs, exact)
        if own <= LOSS / 8:
            return folder, model, ids, theirs, own
    raise ValueError(f"no configuration of eight is steady: PyTorch's fp32 is {own:.1e} from its fp64")


def losses(bench):
    """Ten steps of every family and optimizer; what was saved then, beside PyTorch's weights, has no bar."""
    for family in bench.among(draw.TRAINED):
        number = draw.TRAINED.index(family)
        for index, (optimizer, flags, make, clip) in enumerate(WAYS):
            with bench.figures.attempt("losses", f"{family} {optimizer}"):
                folder, model, ids, theirs, own = steady(bench, family, index, make, clip)
                way = job(ids, number + index, optimizer=optimizer)
                out = bench.engine.place("saved")
                ran = bench.engine.planned(folder, way, "--steps", str(STEPS), "--save", out, *flags, tokens=ids)
                if len(ran.losses) != STEPS:
                    raise ValueError(f"{len(ran.losses)} losses of {STEPS} steps")
                worst = furthest(ran.losses, theirs)
                clipped = f" clip {clip}" if clip else ""
                weights = dict(model.named_parameters())
                apart = compared({name: weight for name, weight in models.loaded(out).named_parameters()}, weights)[0]
                bench.figures.within("losses", f"{family} {optimizer}{clipped}: {way}", worst, LOSS,
                                     f"{theirs[0]:.4f} to {theirs[-1]:.4f}; weights then {apart:.1e} apart; PyTorch's fp32 is {own:.1e} from its fp64")
            bench.clear()
        bf16(bench, family)


def bf16(bench, family):
    """The same in bf16, weights and states too, beside PyTorch's bf16 and its fp32: no bar, since what rounding does
    to a loss is chance."""
    with bench.figures.attempt("losses", f"{family} bf16-true"):
        folder, model, ids = small(bench, family, 0, "bf16-true")
        make = WAYS[0][2]
        exact = trained(models.loaded(folder, torch.float32), ids, 4, STEPS, make, 0)
        theirs = trained(model, ids, 4, STEPS, make, 0)
        ran = bench.engine.planned(folder, job(ids, 1, precision="bf16-true"), "--steps", str(STEPS), tokens=ids)
        note = f"from PyTorch's fp32; its bf16 {furthest(theirs, exact):.1e}; between the two {furthest(ran.losses, theirs):.1e}"
        bench.figures.told("losses", f"{family} bf16-true adamw", f"{furthest(ran.losses, exact):.2g}", note)
    bench.clear()
