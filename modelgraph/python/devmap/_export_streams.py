"""Which tokens a layer works on, by the rows that it sees."""

from __future__ import annotations

from ._export_part import Part
from ._export_trace import tensors_in
from ._export_tree import Layer


def streams(layers: list[Layer], of: dict[int, Part], inputs: dict[str, list[str]], rows: dict[str, int],
            batch: int, seq: int, target: int) -> dict[str, dict | None]:  # fmt: skip
    """The stream of every layer with an operation; None is the text's."""
    out: dict[str, dict | None] = {name: _of(count, batch, seq, target) for name, count in rows.items()}
    for layer in layers:
        part = of.get(id(layer))
        if part is None or part.op["kind"] in ("rotary",):
            continue
        out[layer.name] = _of(part.tokens * (batch if part.shared else 1), batch, seq, target)
    for layer in layers:
        part = of.get(id(layer))
        if part is None or layer.name not in out:
            continue
        kind = part.op["kind"]
        before = [name for name in inputs.get(layer.name, []) if name in out]
        if part.tokens == batch and kind in ("linear", "head"):
            part.op["pooled"] = True
            out[layer.name] = out[before[0]] if before else None
        if kind == "conv":
            _rate(layer.name, part, out, inputs)
    return out


def _of(tokens: int, batch: int, seq: int, target: int) -> dict | None:
    if seq and tokens == batch * seq:
        return None
    if target and tokens == batch * target:
        return {"kind": "target"}
    if tokens <= batch:
        return None
    return {"kind": "fixed", "tokens": tokens // batch if tokens % batch == 0 else tokens}


def _rate(name: str, part: Part, out: dict[str, dict | None], inputs: dict[str, list[str]]) -> None:
    """A convolution that runs at a multiple of the rate of what reads it."""
    mine = out[name]
    readers = [out[one] for one, sources in inputs.items() if name in sources and one in out]
    if not mine or not readers or not readers[0] or "tokens" not in mine or "tokens" not in readers[0]:
        return
    ratio, rest = divmod(mine["tokens"], readers[0]["tokens"])
    if rest == 0 and ratio > 1:
        part.op["token_ratio"] = ratio
        out[name] = dict(readers[0])


def lengths(args: tuple, kwargs: dict) -> tuple[int, int, int]:
    """Batch, tokens of a sequence, and of a decoder's, by what went in: integers of two sides are tokens, else a first
    tensor of three sides is a sequence of vectors. 0: there is none."""
    tensors = tensors_in((args, kwargs))
    ids = [tensor for tensor in tensors if not tensor.is_floating_point() and tensor.dim() == 2]
    batch = tensors[0].shape[0] if tensors[0].dim() else 1
    target = kwargs.get("decoder_input_ids")
    words = kwargs.get("input_ids", ids[0] if ids else None)
    if words is target:
        words = None
    seq = words.shape[1] if words is not None and words.dim() > 1 else 0
    if not seq and not ids and tensors[0].dim() == 3:
        seq = tensors[0].shape[1]
    return batch, seq, target.shape[1] if target is not None else 0
