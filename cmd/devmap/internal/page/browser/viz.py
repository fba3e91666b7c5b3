"""Write the page of torch's memory_viz for a training step: viz.py CONFIG SEQ MICRO-BATCHES OUT.html

The step runs on fake tensors, so it needs no GPU. A dispatch mode notes each storage
when an operation makes it and when Python frees it. The snapshot has the fields that
torch.cuda.memory._snapshot() has, with stacks of Python as "context=all" notes them.
trace_plot of torch writes the page.
"""
import itertools
import json
import sys
import traceback
import weakref

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.cuda._memory_viz import trace_plot
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoConfig, AutoModelForCausalLM


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.events, self.known, self.top, self.ticks = [], {}, 1 << 40, itertools.count(1)

    def note(self, action, address, size, frames):
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0, "time_us": next(self.ticks), "frames": frames})

    def see(self, tensor):
        storage = tensor.untyped_storage()
        if id(storage) in self.known or storage.nbytes() == 0:
            return
        size = -(-storage.nbytes() // 512) * 512
        address, self.top = self.top, self.top + size
        frames = [{"filename": frame.filename, "line": frame.lineno, "name": frame.name} for frame in reversed(traceback.extract_stack(limit=60)[:-2])]
        self.known[id(storage)] = address
        self.note("alloc", address, size, frames)
        weakref.finalize(storage, self.free, id(storage), address, size)

    def free(self, key, address, size):
        self.known.pop(key, None)
        for action in "free_requested", "free_completed":
            self.note(action, address, size, [])

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf)
        return result


def main(config, seq, batches, out):
    recorder = Recorder()
    with FakeTensorMode(), recorder:
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(config), dtype=torch.bfloat16)
        optimizer = torch.optim.AdamW(model.parameters())
        ids = torch.zeros(1, int(seq), dtype=torch.long)
        for _ in range(int(batches)):
            model(input_ids=ids, labels=ids, use_cache=False).loss.backward()
        optimizer.step()
    segment = {"device": 0, "address": 1 << 40, "total_size": recorder.top - (1 << 40), "stream": 0, "segment_type": "large", "allocated_size": 0, "active_size": 0, "blocks": []}
    live = dict.fromkeys(recorder.known.values())
    for event in recorder.events:
        if event["action"] == "alloc":
            state = "active_allocated" if event["addr"] in live else "inactive"
            segment["blocks"].append({"address": event["addr"], "size": event["size"], "requested_size": event["size"], "state": state, "frames": event["frames"]})
    with open(out, "w") as page:
        page.write(trace_plot({"segments": [segment], "device_traces": [recorder.events]}))
    total = peak = 0
    for event in recorder.events:
        total += {"alloc": event["size"], "free_completed": -event["size"]}.get(event["action"], 0)
        peak = max(peak, total)
    print(json.dumps({"events": len(recorder.events), "peak_bytes": peak}))


main(*sys.argv[1:])
