"""Normalisations of the last dimension."""

from __future__ import annotations

from ._export_flow import Flow
from ._export_part import Part


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
    names = [flow.steps[at].name for at in steps]
    if not {"rsqrt"} & set(names) and "sqrt" not in names or "mean" not in names:
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
        op = {"kind": "norm", "dim": width, "style": style}
        if _only_added(flow, call.outputs):
            op["post"] = True
        if epsilon:
            op["epsilon"] = epsilon
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
