"""Adapters of peft: layers next to the one that they change, whose operation stays what it is without them."""

# pyright: basic, reportMissingImports=false
# mypy: disable-error-code="type-arg, no-untyped-def, no-untyped-call, no-any-return, misc, return-value"

from __future__ import annotations

import dataclasses

from .forward import Call, Trace

BASE = "base_layer"  # what a tuner's layer wraps (peft/tuners/tuners_utils.py, BaseTunerLayer)


def set_apart(trace: Trace) -> None:
    """Makes what follows an adapted layer read the base layer's result, and the base layer what its wrapper read. The
    adapter's own steps keep their places, and nothing reads their result."""
    wrappers = [path for path, one in trace.modules.items() if hasattr(one, BASE) and hasattr(one, "adapter_layer_names")]
    if not wrappers:
        return
    trace.added = {
        name
        for names in trace.parameters.values()
        for name in names
        if any(name.startswith(path + ".") and not name.startswith(f"{path}.{BASE}.") for path in wrappers)
    }
    alias: dict[int, int] = {}
    for call in trace.calls:
        if call.path in wrappers:
            _bypass(trace, call, alias)

    def plain(number: int) -> int:
        while number in alias:
            number = alias[number]
        return number

    results = set(alias.values())
    for at, step in enumerate(trace.steps):
        found = [plain(one) for one in step.inputs if at not in trace.beside or plain(one) not in results]
        trace.steps[at] = dataclasses.replace(step, inputs=list(dict.fromkeys(found)))
    for call in trace.calls:
        call.inputs, call.outputs = [plain(one) for one in call.inputs], [plain(one) for one in call.outputs]
        call.kinds = {name: plain(one) for name, one in call.kinds.items()}
    for key, number in trace.numbers.items():
        trace.numbers[key] = plain(number)


def _bypass(trace: Trace, call: Call, alias: dict[int, int]) -> None:
    """Aliases of one call of a wrapper. Its base layer is called once."""
    inner = [one for one in trace.calls if one.path == f"{call.path}.{BASE}" and call.first <= one.first and one.end <= call.end]
    if len(inner) != 1 or not inner[0].outputs or not call.outputs or not inner[0].inputs or not call.inputs:
        return
    base = inner[0]
    own = {at for at in range(call.first, call.end) if not base.first <= at < base.end}
    trace.beside |= own
    if call.outputs[0] != base.outputs[0]:
        alias[call.outputs[0]] = base.outputs[0]
    if base.inputs[0] != call.inputs[0] and trace.maker.get(base.inputs[0]) in own:
        alias[base.inputs[0]] = call.inputs[0]
