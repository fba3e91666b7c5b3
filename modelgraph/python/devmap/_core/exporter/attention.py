"""Norms and attention among the calls of a forward."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import inspect

import torch

from .flow import SAME, Flow, Part, common, within

# Normalisations of the last dimension.


def style_of(flow: Flow, steps: list[int]) -> tuple[str | None, int, float | None]:
    """The style of the first norm among steps, its width and its epsilon; None where there is none.

    A root mean square is known by its steps: a mean, a reciprocal root, a product with a weight, to which some add 1.
    """
    for at in steps:
        step = flow.steps[at]
        if step.name == "layer_norm":
            return "layer", flow.width_in(step), _epsilon(step, 4)
        if step.name == "rms_norm":
            return "rms", flow.width_in(step), _epsilon(step, 3)
    names = _names(flow, steps)
    if not {"rsqrt", "sqrt"} & set(names) or "mean" not in names:
        return None, 0, None
    root = steps[names.index("rsqrt") if "rsqrt" in names else names.index("sqrt")]
    mean = flow.steps[steps[names.index("mean")]]
    width = flow.width_in(mean)
    for at in steps:
        step = flow.steps[at]
        if at > root and step.name in ("mul", "rmul") and any(flow.weight(number) for number in step.inputs):
            shifted = any(
                flow.steps[flow.trace.maker[number]].name in ("add", "radd")
                for number in step.inputs
                if flow.weight(number) and number in flow.trace.maker
            )
            style = (
                "gemma-rms" if shifted else "layer" if {"sub", "rsub"} & set(names) else "rms"
            )  # less its mean (Cohere)
            return style, width, _added(flow, steps)
    return None, 0, None


def _names(flow: Flow, steps: list[int]) -> list[str]:
    """The names of steps, where a power of -0.5 is a reciprocal root (Gemma 4)."""
    half = lambda at: any(isinstance(value, float) and value == -0.5 for value in flow.steps[at].arguments)  # noqa: E731
    return ["rsqrt" if half(at) else flow.steps[at].name for at in steps]


def in_fp32(flow: Flow, steps: list[int], narrow: int) -> dict:
    """What a norm of a 16-bit tensor does in fp32: its product with the weight (fp32), or a LayerNorm's steps in Python
    (eager). Gemma's norms always do."""
    style, _, _ = style_of(flow, steps)
    if style not in ("rms", "layer") or flow.tensor(narrow).element_size() > 2:
        return {}
    for at in reversed(steps):
        step = flow.steps[at]
        if step.name in ("layer_norm", "rms_norm"):
            return {"fp32": True} if flow.tensor(flow.main(step)).dtype == torch.float32 else {}
        if step.name in ("mul", "rmul") and any(flow.weight(number) for number in step.inputs):
            wide = flow.tensor(step.outputs[0]).dtype == torch.float32
            return {"fp32" if style == "rms" else "eager": True} if wide else {}
    return {}


def _epsilon(step, place: int) -> float | None:
    value = step.keywords.get("eps", step.arguments[place] if len(step.arguments) > place else None)
    return value if isinstance(value, float) else None


def _added(flow: Flow, steps: list[int]) -> float | None:
    for at in steps:
        step = flow.steps[at]
        if step.name in ("add", "radd") and not any(flow.weight(number) for number in step.inputs):
            for value in step.arguments:
                if isinstance(value, float):
                    return value
    return None


def norms(flow: Flow, taken: set) -> list[Part]:
    """Modules that do nothing but normalise."""
    parts = []
    for call in flow.trace.calls:
        steps = [at for at in range(call.first, call.end) if at not in taken]
        own = [at for at in steps if flow.steps[at].scope == call.path]
        if not own or len(own) != call.end - call.first:
            continue
        style, width, epsilon = style_of(flow, own)
        params = {name for at in own for name in flow.params(flow.steps[at])}
        if style is None or not call.inputs or any(flow.matrix(flow.steps[at]) for at in own):
            continue
        if style != "layer" and len(flow.shape(call.inputs[0])) > 3:
            continue  # of parts of tokens, which no stream has (Gemma 4's embeddings for each layer)
        op = {"kind": "norm", "dim": width, "style": style}
        if _only_added(flow, call.outputs):
            op["post"] = True
        if epsilon:
            op["epsilon"] = epsilon
        op.update(in_fp32(flow, own, call.inputs[0]))
        shape = flow.shape(call.inputs[0])
        rows = 1
        for side in shape[:-1]:
            rows *= side
        parts.append(Part(call.path, op, set(own), params, call.inputs[0], tokens=rows))
    return parts


def _only_added(flow: Flow, outputs: list[int]) -> bool:
    """Whether the result does nothing but join the stream that it left (Gemma 2)."""
    readers = [at for number in outputs[:1] for at in flow.readers_of(number)]
    if len(readers) != 1 or flow.steps[readers[0]].name not in ("add", "radd", "iadd"):
        return False
    others = [number for number in flow.steps[readers[0]].inputs if flow.plain(number) != flow.plain(outputs[0])]
    return bool(others) and all(flow.weight(number) is None for number in others)


# Attention: what is between the projections of queries, keys and values and the one after them.

_SCORES = frozenset("matmul bmm baddbmm einsum rmatmul".split())


def attentions(flow: Flow, units: dict[str, str]) -> list[Part]:
    """Every attention that the trace shows: calls of PyTorch's kernel, and score matrices that pass a softmax."""
    parts = []
    for index, step in enumerate(flow.steps):
        core = None
        if step.name == "multi_head_attention_forward":
            parts.append(_whole(flow, index))
        if step.name == "scaled_dot_product_attention":
            core = (step.inputs[:3], {index}, index, index)
        elif step.name == "softmax":
            core = _eager(flow, index)
        if core is not None:
            part = _part(flow, units, *core)
            if part is not None and not _joint(flow, part):
                parts.append(part)
    for part in parts:
        if not part.op.get("bidirectional") and not part.op.get("cross") and _uncached(flow.trace.modules.get(part.path)):
            part.op["uncached"] = True
    return parts


def _uncached(module: torch.nn.Module | None) -> bool:
    """Whether a module of Transformers takes no cache: CLIP's text model has causal attention, and none. Nor does a BERT that is
    no decoder."""
    if module is None or not type(module).__module__.startswith("transformers."):
        return False
    encodes = any(getattr(one, "is_decoder", True) is False for one in module.modules())
    return encodes or not any("past" in name or "cache" in name for name in inspect.signature(type(module).forward).parameters)


def _joint(flow: Flow, part: Part) -> bool:
    """Whether two streams meet in one attention, or its last product takes a network's result too: no operation of
    devmap describes these blocks of diffusers."""
    latent = "kv_rank" in part.op or "q_rank" in part.op
    shapes = {names[0]: flow.shape(number) for number, names in flow.trace.parameters.items() if names[0] in part.params}
    matrices = [shape for shape in shapes.values() if len(shape) == 2]
    dim, heads, width = part.op["dim"], part.op["heads"], part.op["head_dim"]
    widest = 2 * heads * width + part.op["kv_heads"] * (width + part.op.get("value_dim", width))
    return len(matrices) > 5 and not latent or any(dim in shape and max(shape) > max(dim, widest) for shape in matrices)


def _whole(flow: Flow, index: int) -> Part:
    """torch.nn.MultiheadAttention, which is one function (nn/functional.py: multi_head_attention_forward)."""
    step = flow.steps[index]
    query, key, width, heads = *step.inputs[:2], step.arguments[3], step.arguments[4]
    op = {"kind": "attention", "dim": width, "heads": heads, "kv_heads": heads, "head_dim": width // heads}
    mask = step.keywords.get("attn_mask")
    if key != query:
        op["cross"] = True
    elif not step.keywords.get("is_causal") and not _looks_back(
        flow.trace.values.of(mask) if mask is not None else None
    ):
        op["bidirectional"] = True
    if step.keywords.get("need_weights", True):
        op["eager"] = True
    if (
        step.keywords.get("in_proj_weight", step.arguments[5] if len(step.arguments) > 5 else None) is not None
        and key == query
    ):
        op["fused"] = True
    steps = {index}
    op.update(result_of(flow, index, steps))
    part = Part(step.scope, op, steps, set(flow.params(step)), query, tokens=_rows(flow, query))
    part.more = [key] if key != query else []
    return part


def _eager(flow: Flow, softmax: int) -> tuple[list[int], set[int], int, int] | None:
    """Queries, keys and values of a softmax over scores that were made by one product and weigh another."""
    data = flow.data(flow.steps[softmax])
    if not data or len(flow.shape(data[0])) < 3:
        return None
    product = lambda at: flow.steps[at].name in _SCORES and flow.matrix(flow.steps[at]) is None  # noqa: E731
    scope = flow.steps[softmax].scope
    inside = lambda at: within(flow.steps[at].scope, scope)  # noqa: E731
    before = [at for at in flow.back(data, lambda at: product(at) or not inside(at)) if product(at) and inside(at)]
    after = [
        at
        for at in flow.ahead(flow.steps[softmax].outputs, lambda at: product(at) or not inside(at))
        if product(at) and inside(at)
    ]
    if not before or not after:
        return None
    # Of several products (a bias that is one too) the scores are the last before, the values the first after.
    scores, values = max(before), min(after)
    operands = [number for number in flow.data(flow.steps[scores]) if len(flow.shape(number)) >= 3][-2:]
    others = [number for number in flow.data(flow.steps[values]) if flow.trace.maker.get(number, -1) < softmax]
    if len(operands) < 2 or not others:
        return None
    between = flow.back([flow.main(flow.steps[values])], lambda at: at == scores)
    return [*operands, others[-1]], {at for at in between if at >= scores} | {values}, scores, values


def _part(flow: Flow, units: dict[str, str], qkv: list[int], core: set[int], first: int, last: int) -> Part | None:
    linear = lambda at: flow.matrix(flow.steps[at]) is not None  # noqa: E731
    scope = flow.steps[first].scope
    ways = [sorted(at for at in flow.back([number], linear) if linear(at)) for number in qkv]
    if not all(ways):
        return None
    nearest = [max(way) for way in ways]
    out = sorted(
        at
        for at in flow.ahead(flow.steps[last].outputs, lambda at: linear(at) or flow.steps[at].name in _SCORES)
        if linear(at)
    )
    path = common([scope] + [flow.steps[at].scope for at in nearest])
    if out:
        wider = common([path, flow.steps[out[0]].scope])
        if (
            wider
            and (wider == path or _depth(path) - _depth(wider) <= 2)
            and wider not in ("",)
            and units.get(wider, wider) != ""
        ):
            path, behind = wider, [out[0]]
        else:
            behind = []
    else:
        behind = []
    inside = lambda at: within(flow.steps[at].scope, path)  # noqa: E731
    before = {at for at in flow.back(qkv, lambda at: not inside(at)) if inside(at)}
    entries = [
        at
        for at in sorted(before)
        if linear(at)
        and not any(
            linear(other)
            for other in flow.back(flow.data(flow.steps[at]), lambda one: not inside(one))
            if inside(other)
        )
    ]
    if not entries:
        return None
    begin = min(entries)
    after = {
        at
        for at in flow.back([flow.main(flow.steps[at]) for at in behind], lambda at: at in core)
        if inside(at) and at > begin
    }
    steps = (
        {at for at in before if at >= begin} | {at for at in core if inside(at) and at >= begin} | after | set(behind)
    )
    scored = [number for at in core for number in flow.data(flow.steps[at])]
    steps |= {
        at
        for at in flow.back(scored, lambda at: not inside(at))
        if inside(at) and at >= begin or inside(at) and _table(flow, at)
    }
    steps |= {at for at in range(begin, max(steps) + 1) if flow.steps[at].scope == scope and inside(at)}
    op = _op(flow, qkv, ways, nearest, entries, behind, core, first, last, steps)
    params = {name for at in steps for name in flow.params(flow.steps[at])}
    query = flow.main(flow.steps[min(ways[0])] if entries else flow.steps[begin])
    part = Part(path, op, steps, params, flow.main(flow.steps[_entry(flow, ways[0][-1], entries)]))
    key = flow.main(flow.steps[_entry(flow, ways[1][-1], entries)])
    if flow.plain(key) != flow.plain(part.main) and flow.plain(key) != flow.plain(query):
        part.more = [key]
        if op.get("cross") is None and _foreign(flow, key, part.main, path):
            op["cross"] = True
            op.pop("bidirectional", None)
    part.tokens = _rows(flow, part.main)
    return part


def _table(flow: Flow, at: int) -> bool:
    """Whether a step looks biases of scores up (T5), which may come before the projections."""
    return flow.steps[at].name == "embedding"


def _entry(flow: Flow, at: int, entries: list[int]) -> int:
    """The projection that a way begins with."""
    behind = flow.back(flow.data(flow.steps[at]), lambda one: one in entries)
    found = [one for one in behind if one in entries]
    return at if at in entries or not found else max(found)


def _rows(flow: Flow, number: int) -> int:
    shape = flow.shape(number)
    rows = 1
    for side in shape[:-1]:
        rows *= side
    return rows


def _depth(path: str) -> int:
    return path.count(".") + 1 if path else 0


def _foreign(flow: Flow, key: int, query: int, path: str) -> bool:
    """Whether keys are made of something else than queries are: not both of one tensor outside."""
    inside = lambda at: within(flow.steps[at].scope, path)  # noqa: E731
    roots = []
    for number in (key, query):
        steps = flow.back([number], lambda at: not inside(at))
        roots.append({at for at in steps if not inside(at)})
    return not roots[0] & roots[1]


def _op(flow, qkv, ways, nearest, entries, behind, core, first, last, steps) -> dict:
    heads, head_dim = _heads(flow, qkv[0])
    value_dim = flow.shape(qkv[2])[-1]
    entry = flow.steps[_entry(flow, nearest[0], entries)]
    op = {"kind": "attention", "dim": flow.width_in(entry), "heads": heads, "kv_heads": 0, "head_dim": head_dim}
    if value_dim != head_dim:
        op["value_dim"] = value_dim
    fused = nearest[0] == nearest[1] == nearest[2]
    key = flow.width_out(flow.steps[nearest[1]])
    if nearest[1] not in entries:  # latents: keys and values of one narrow product
        narrow = flow.steps[_entry(flow, nearest[1], entries)]
        rank = flow.width_in(flow.steps[nearest[1]])
        op["value_dim"] = value_dim
        op["kv_rank"], op["rope_dim"] = rank, flow.width_out(narrow) - rank
        op["kv_heads"] = heads
        if nearest[0] not in entries:
            op["q_rank"] = flow.width_in(flow.steps[nearest[0]])
    elif fused:
        op["fused"] = True
        op["kv_heads"] = (flow.width_out(flow.steps[nearest[0]]) - heads * head_dim) // (head_dim + value_dim)
    elif nearest[1] == nearest[2]:
        op["kv_heads"] = key // (head_dim + value_dim)
    else:
        op["kv_heads"] = key // head_dim
    wide = flow.width_out(flow.steps[nearest[0]])
    if not fused and "kv_rank" not in op and (wide == 2 * heads * head_dim or _gate(flow, steps, {*nearest, *entries}, heads * value_dim)):
        op["gated"] = True
    _positions(flow, qkv[0], op)
    _norms(flow, qkv[0], nearest[0], steps, op)
    if {"mean", "rsqrt"} <= set(_names(flow, sorted(flow.back([qkv[2]], lambda at: at == nearest[2])))):
        op["value_norm"] = True
    _masks(flow, first, last, core, op)
    _said(flow.trace.modules.get(flow.steps[first].scope), op)
    if behind:
        op.update(result_of(flow, behind[0], steps))
    return op


def _gate(flow: Flow, steps, known: set[int], wide: int) -> bool:
    """Whether a projection of its own makes a gate, as wide as the result, whose sigmoid scales it."""
    products = sorted(at for at in steps if flow.matrix(flow.steps[at]) and flow.params(flow.steps[at]))
    return any(flow.steps[at].name == "sigmoid" for at in steps) and any(at not in known and flow.width_out(flow.steps[at]) == wide for at in products[:-1])


def _said(module, op: dict) -> None:
    """What a short forward does not show and Transformers' modules have as attributes: a window (a mask of few tokens
    has none), and a cap of the scores that PyTorch's kernel leaves out."""
    config = getattr(module, "config", None)
    everywhere = None if hasattr(config, "layer_types") else getattr(config, "sliding_window", None)
    window = getattr(module, "sliding_window", everywhere) if getattr(module, "is_sliding", True) else None
    if isinstance(window, int) and not isinstance(window, bool) and window > 0:
        op["window"] = window
    if getattr(module, "attn_logit_softcapping", None):
        op["soft_cap"] = True


def _heads(flow: Flow, query: int) -> tuple[int, int]:
    """Heads and their width: the kernel has [batch, heads, tokens, width], a product may have both in one."""
    shape = flow.shape(query)
    if len(shape) == 4:
        return shape[1], shape[3]
    number = query
    for _ in range(32):
        at = flow.trace.maker.get(number)
        if at is None or not flow.data(flow.steps[at]):
            break
        number = flow.data(flow.steps[at])[0]
        if len(flow.shape(number)) == 4:
            four = flow.shape(number)
            return (four[1] if four[3] == shape[-1] and four[0] * four[1] == shape[0] else four[2]), four[3]
    return 1, shape[-1]


def _positions(flow: Flow, query: int, op: dict) -> None:
    """Rotary positions: a cosine, or a product of complex numbers, on the way to the queries."""
    linear = lambda at: flow.matrix(flow.steps[at]) is not None  # noqa: E731
    steps = flow.back([query], linear)
    names = {flow.steps[at].name for at in steps}
    if names & {"cos", "polar", "view_as_complex"} or {"neg", "cat"} <= names:
        op["rope"] = True
        _rotation(flow, sorted(steps), op)


def _rotation(flow: Flow, steps: list[int], op: dict) -> None:
    """The width of a head that turns, if it is joined with the rest, and what turns in fp32: the sum of two products of
    16 bits with fp32 cosines, or of what was cast before (ModernBERT, or before its halves were stacked, Cohere)."""
    wide = lambda number: flow.tensor(number).dtype == torch.float32  # noqa: E731
    for at in steps:
        step = flow.steps[at]
        data = flow.data(step)
        made = [flow.steps[flow.trace.maker[one]] for one in data if one in flow.trace.maker]
        if step.name == "cat" and len(data) == 2 and "kv_rank" not in op and made and made[0].name in ("add", "radd"):
            op["turning"] = flow.shape(data[0])[-1]
        if step.name != "add" or len(made) != 2 or not wide(step.outputs[0]):
            continue
        turned = [flow.data(one)[0] for one in made if one.name in ("mul", "rmul")]
        cast = len(turned) == 2 and sum(_cast(flow, one) for one in turned) == 1  # its halves were cast with it
        if cast or any(flow.steps[one].name == "stack" and wide(flow.steps[one].outputs[0]) for one in steps):
            op["cast_rotation"] = True
        elif len(turned) == 2 and not any(map(wide, turned)):
            op["fp32_rotation"] = True


def _cast(flow: Flow, number: int) -> bool:
    """Whether a tensor is the fp32 copy of one of 16 bits."""
    at = flow.trace.maker.get(number)
    data = flow.data(flow.steps[at]) if at is not None and flow.steps[at].name in ("float", "to", "_to_copy") else []
    return len(data) == 1 and flow.tensor(number).dtype == torch.float32 and flow.tensor(data[0]).dtype in (torch.float16, torch.bfloat16)


def _norms(flow: Flow, query: int, linear: int, steps: set[int], op: dict) -> None:
    """Norms between the projection of queries and the scores."""
    way = flow.back([query], lambda at: at == linear)
    style, width, _ = style_of(flow, [at for at in sorted(way) if at != linear])
    if style is not None:
        op["qk_norm"] = style
        if width > op["head_dim"]:
            op["qk_norm_whole"] = True
        if in_fp32(flow, [at for at in sorted(way) if at != linear], flow.steps[linear].outputs[0]).get("fp32"):
            op["qk_norm_fp32"] = True


def _masks(flow: Flow, first: int, last: int, core: set[int], op: dict) -> None:
    step = flow.steps[first]
    names = {flow.steps[at].name for at in core}
    if step.name != "scaled_dot_product_attention":
        op["eager"] = True
        if "tanh" in names:
            op["soft_cap"] = True
        if any(flow.steps[at].name == "cat" and flow.params(flow.steps[at]) for at in core):
            op["own_scores"] = True  # a column for the sink of a head (gpt-oss)
        causal = _causal_mask(flow, core, first)
        if causal is None:
            causal = getattr(flow.trace.modules.get(step.scope), "is_causal", None)
        if causal is False:
            op["bidirectional"] = True
        return
    causal = bool(step.keywords.get("is_causal", step.arguments[5] if len(step.arguments) > 5 else False))
    mask = step.keywords.get("attn_mask", step.arguments[3] if len(step.arguments) > 3 else None)
    if mask is not None:
        if mask.is_floating_point() and mask.dim() == 4 and mask.shape[1] == op["heads"] > 1:
            op["eager"] = True  # a bias a head: as large as the scores, and in memory
            _bias(flow, flow.trace.number(mask), op)
        shown = _looks_back(flow.trace.values.of(mask))
        causal = shown if shown is not None else bool(getattr(flow.trace.modules.get(step.scope), "is_causal", False))
    if not causal:
        op["bidirectional"] = True


def _bias(flow: Flow, mask: int, op: dict) -> None:
    """T5's bias: rows of a table, laid out by heads last, which the math kernel alone takes; zeros in cross-attention."""
    made = {flow.steps[at].name for at in flow.back([mask], lambda at: False)}
    if "embedding" in made and flow.tensor(mask).stride(-1) != 1 or made == {"zeros"}:
        op["score_bias"], op["unfused"] = "relative", True


def _causal_mask(flow: Flow, core: set[int], first: int) -> bool | None:
    """Whether what is added to scores, or filled in, forbids later tokens; None where nothing tells."""
    for at in sorted(core):
        for number in flow.data(flow.steps[at]):
            shape = flow.shape(number)
            value = flow.trace.values.of(flow.tensor(number))
            if value is not None and len(shape) >= 2 and shape[-1] == shape[-2] > 1:
                found = _looks_back(value)
                if found is not None:
                    return found
    return None


def _looks_back(mask) -> bool | None:
    """Whether the first token may not see the last, by the values of a mask."""
    if mask is None or mask.dim() < 2 or mask.shape[-1] < 2 or mask.shape[-2] < 2:
        return None
    corner = mask.reshape(-1, mask.shape[-2], mask.shape[-1])[0, 0, -1].item()
    diagonal = mask.reshape(-1, mask.shape[-2], mask.shape[-1])[0, 0, 0].item()
    return corner != diagonal


def result_of(flow: Flow, at: int, steps: set[int]) -> dict:
    """Whether a result passes a dropout, and a learned scale, before it is added to the stream; these steps join."""
    op: dict = {}
    number = flow.steps[at].outputs[0]
    way: list[int] = []  # views and casts, which belong to what comes next
    for _ in range(8):
        readers = flow.readers.get(number, [])
        if len(readers) != 1:
            break
        step = flow.steps[readers[0]]
        way.append(readers[0])
        if step.name == "dropout":
            if _probability(step) > 0:
                op["dropout"] = True
            steps.update(way)
        elif step.name in ("mul", "rmul") and any(
            flow.weight(one) is not None and len(flow.shape(one)) == 1 for one in step.inputs
        ):
            op["layer_scale"] = True
            steps.update(way)
        elif step.name not in SAME:
            break
        number = step.outputs[0]
    return op


def _probability(step) -> float:
    if step.keywords.get("training", step.arguments[2] if len(step.arguments) > 2 else True) is False:
        return 0.0
    value = step.keywords.get("p", step.arguments[1] if len(step.arguments) > 1 else 0.5)
    return value if isinstance(value, (int, float)) else 0.0
