"""Transformers' own generation on the same GPU: a static cache, the forward of a token compiled.

usage: generate.py MODELS CASE...

MODELS is a folder of folders with a config.json each; a case is MODEL:BATCH:SEQ:NEW. Prints a JSON object a case: tokens
a second without the prompt's, of 3 runs the median, and the bytes of weights.
"""

import json
import os
import statistics
import sys
import time

from peer import PLACE, built, synchronize
import torch


def measured(models, case, runs=3):
    name, *numbers = case.split(":")
    batch, seq, new = map(int, numbers)
    model = built(os.path.join(models, name, "config.json")).eval()
    ids = torch.randint(0, model.config.vocab_size, (batch, seq), device=PLACE)

    def timed(count):
        synchronize()
        begun = time.perf_counter()
        with torch.no_grad():
            model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=count, max_new_tokens=count, cache_implementation="static", pad_token_id=0)
        synchronize()
        return time.perf_counter() - begun

    timed(new), timed(new)  # compiles, and captures
    rates = [batch * (new - 1) / (timed(new) - timed(1)) for _ in range(runs)]
    weights = sum(weight.numel() * weight.element_size() for weight in model.parameters())
    return {"case": case, "tokens_per_second": statistics.median(rates), "weights": weights, "versions": f"torch {torch.__version__}"}


def main():
    models, *cases = sys.argv[1:]
    for case in cases:
        print(json.dumps(measured(models, case)), flush=True)


if __name__ == "__main__":
    main()
