"""What a network's activation is called."""

from __future__ import annotations

import dataclasses

from ._export_flow import SAME, Flow

# Names as Transformers' ACT2FN has them (activations.py), by the torch function.
_FUNCTIONS = {
    "silu": "silu",
    "relu": "relu",
    "relu_": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "mish": "mish",
    "relu6": "relu6",
    "leaky_relu": "leaky_relu",
    "elu": "elu",
    "selu": "selu",
    "hardswish": "hardswish",
    "softplus": "softplus",
    "celu": "celu",
    "hardtanh": "hardtanh",
    "logsigmoid": "logsigmoid",
    "hardsigmoid": "hardsigmoid",
    "softsign": "softsign",
}
# Those that are written in Python, by their class (torch calls them step by step).
_CLASSES = {
    "NewGELUActivation": "gelu_new",
    "FastGELUActivation": "gelu_fast",
    "QuickGELUActivation": "quick_gelu",
    "ReLUSquaredActivation": "relu2",
    "BloomGelu": "gelu_pytorch_tanh",
    "ClippedGELUActivation": "gelu_10",
    "LaplaceActivation": "laplace",
    "AccurateGELUActivation": "gelu_accurate",
    "XIELUActivation": "xielu",
    "MishActivation": "mish",
}


@dataclasses.dataclass
class Activation:
    name: str
    steps: set[int]


def activation_of(flow: Flow, steps: list[int]) -> Activation | None:
    """The activation among steps between two projections; None where none is known."""
    for at in steps:
        step = flow.steps[at]
        kind = type(flow.trace.modules.get(step.scope)).__name__
        if kind in _CLASSES:
            inside = {one for one in steps if flow.steps[one].scope == step.scope}
            return Activation(_CLASSES[kind], inside)
    for at in steps:
        step = flow.steps[at]
        if step.name == "gelu":
            tanh = step.keywords.get("approximate", step.arguments[1] if len(step.arguments) > 1 else "none") == "tanh"
            return Activation("gelu_pytorch_tanh" if tanh else "gelu", {at})
        if step.name == "relu" and _squared(flow, at):
            return Activation("relu2", {at, *_squared(flow, at)})
        if step.name in _FUNCTIONS and step.name != "sigmoid":
            return Activation(_FUNCTIONS[step.name], {at})
    swish = [at for at in steps if flow.steps[at].name == "sigmoid"]
    if len(swish) == 1:  # x · sigmoid(a·x) is a quick GELU, sigmoid(x) alone a gate
        scaled = flow.trace.maker.get(flow.main(flow.steps[swish[0]]))
        if scaled is not None and flow.steps[scaled].name in ("mul", "rmul") and scaled in steps:
            return Activation("quick_gelu", {swish[0], scaled})
        return Activation("sigmoid", {swish[0]})
    tanh = [at for at in steps if flow.steps[at].name == "tanh"]
    powers = [at for at in steps if flow.steps[at].name == "pow"]
    if tanh and powers:  # 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))), written out
        return Activation("gelu_new", {at for at in steps if flow.steps[at].name not in SAME})
    return None


def _squared(flow: Flow, at: int) -> set[int]:
    return {one for one in flow.readers.get(flow.steps[at].outputs[0], ()) if flow.steps[one].name in ("square", "pow")}
