"""Models with weights from a seed, saved as Transformers saves them, and what PyTorch makes of them."""

import json
import logging
import math
import os
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, initialization  # noqa: E402

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
transformers.utils.logging.disable_progress_bar()
DTYPES = {"32-true": torch.float32, "bf16-true": torch.bfloat16}


def kind(config):
    return AutoModelForMaskedLM if config.model_type == "bert" else AutoModelForCausalLM


BLOCK = 1048583  # a prime: rows of no width begin alike


def noise(shape, generator):
    """Normal numbers; of a large tensor, a block of them again and again."""
    count = math.prod(shape)
    block = torch.randn(min(count, BLOCK), generator=generator)
    return block.repeat(-(-count // BLOCK))[:count].reshape(shape)


def built(config, seed, dtype=torch.float32):
    """A model of a config, whose weights are drawn so that every one matters: no norm is 1, no bias 0, scores and
    logits spread."""
    with initialization.no_init_weights():
        model = kind(config).from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    model.tie_weights()
    generator, drawn = torch.Generator().manual_seed(seed), set()
    with torch.no_grad():
        for module in model.modules():
            for name, weight in module.named_parameters(recurse=False):
                if id(weight) not in drawn:
                    drawn.add(id(weight))
                    shift, scale = spread(module, name, weight)
                    weight.copy_(noise(weight.shape, generator).mul_(scale).add_(shift))
    return model.to(dtype)


def spread(module, name, weight):
    """Mean and deviation of a parameter: near 1 where a norm multiplies by it, near 0 where one by 1 + it."""
    kind_of = type(module).__name__
    if weight.dim() == 1:
        return (0.0, 0.1) if name == "bias" else (0.0 if kind_of.startswith("Gemma") else 1.0, 0.2)
    if isinstance(module, torch.nn.Embedding):
        return 0.0, 1.5 / math.sqrt(weight.shape[1])
    return 0.0, 1 / math.sqrt(weight.shape[0 if kind_of == "Conv1D" else 1])


def saved(config, seed, folder, precision="32-true"):
    """The model, written to a folder."""
    model = built(config, seed, DTYPES.get(precision, torch.bfloat16))
    model.config.dtype = model.dtype
    model.save_pretrained(folder)
    return model


def config_of(fields):
    return AutoConfig.for_model(**fields)


def loaded(folder, dtype=None):
    with open(os.path.join(folder, "config.json")) as file:
        family = json.load(file)["model_type"]
    auto = AutoModelForMaskedLM if family == "bert" else AutoModelForCausalLM
    return auto.from_pretrained(folder, dtype=dtype or "auto", attn_implementation="eager").eval()


def drawn_ids(seed, lines, seq, vocab):
    return numpy.random.default_rng(seed).integers(0, vocab, (lines, seq))


def forward(model, ids):
    """Logits, and the last hidden states that Transformers returns: after the final norm, before the head."""
    with torch.no_grad():
        out = model(input_ids=torch.as_tensor(ids), output_hidden_states=True, use_cache=False)
    return out.logits, out.hidden_states[-1]


def distance(ours, reference):
    """‖ours − reference‖ / ‖reference‖."""
    ours, reference = ours.double(), reference.double()
    if ours.shape != reference.shape:
        raise ValueError(f"the shape is {list(ours.shape)}, and the reference's {list(reference.shape)}")
    return ((ours - reference).norm() / reference.norm()).item()


def dumped(ran, kind_of):
    """The only tensor of a dump."""
    tensors = load_file(ran.files[kind_of])
    if list(tensors) != [kind_of]:
        raise ValueError(f"the dump of {kind_of} has {sorted(tensors)}")
    return tensors[kind_of]


def versions():
    return f"torch {torch.__version__}, transformers {transformers.__version__}, numpy {numpy.__version__}"
