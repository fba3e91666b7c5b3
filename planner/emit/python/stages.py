# A stage or more of a pipeline on every GPU, by torch.distributed.pipelining.


class Stage(torch.nn.Module):
    """Some layers of the model, in its order; the first takes ids, the last gives logits."""

    def __init__(self, model, units, kind):
        super().__init__()
        inner, self.kind, self.config = model.model, kind, model.config
        self.embed = inner.embed_tokens if "model.embed_tokens" in units else None
        numbers = [int(unit.rsplit(".", 1)[1]) for unit in units if unit.startswith("model.layers.")]
        self.layers = torch.nn.ModuleList(checkpointed(inner.layers[number]) if recomputed(number) else inner.layers[number] for number in numbers)
        self.rotary = inner.rotary_emb
        self.norm = inner.norm if "model.norm" in units else None
        self.head = model.lm_head if "lm_head" in units else None

    def forward(self, hidden):
        with autocast(self.kind):
            if self.embed is not None:
                hidden = self.embed(hidden)
            positions = torch.arange(hidden.shape[1], device=hidden.device)[None]
            rotation = self.rotary(hidden, positions)
            for layer in self.layers:
                hidden = layer(hidden, position_embeddings=rotation, attention_mask=None, position_ids=positions)
                hidden = hidden[0] if isinstance(hidden, tuple) else hidden
            if self.norm is not None:
                hidden = self.norm(hidden)
            if self.head is None:
                return hidden
            logits, cap = self.head(hidden), getattr(self.config, "final_logit_softcapping", None)
            return torch.tanh(logits / cap) * cap if cap else logits


def loss_of(logits, targets):
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def work(kind, device, rank):
    import copy

    from torch.distributed import pipelining

    whole = built()
    config, parts, count = whole.config, JOB["micro_batches"], len(JOB["stages"])
    shape = JOB["batch"] // parts, JOB["seq"]
    dtype = DTYPES[JOB["precision"]]
    ends = [torch.zeros(shape, dtype=torch.long, device="meta")]
    ends += [torch.empty(*shape, config.hidden_size, dtype=dtype, device="meta")] * (count - 1)
    ends += [torch.empty(*shape, config.vocab_size, dtype=MIXED or dtype, device="meta")]
    stages = []
    for index, (owner, units) in enumerate(JOB["stages"]):
        if owner == rank:
            module = Stage(whole if count == 1 else copy.deepcopy(whole), units, kind)  # a tied parameter has a copy on each stage
            filled(module, device)
            stages.append(pipelining.PipelineStage(module, index, count, device, input_args=(ends[index],), output_args=(ends[index + 1],)))
    made = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B, "interleaved": pipelining.ScheduleInterleaved1F1B}[JOB["schedule"]]
    schedule = made(stages if made is pipelining.ScheduleInterleaved1F1B else stages[0], n_microbatches=parts, loss_fn=loss_of)
    optimizer = optimizer_of([parameter for stage in stages for parameter in stage.submod.parameters()], kind)
    ids = batch(config, device, JOB["batch"])

    def step():
        first, last = any(stage.is_first for stage in stages), any(stage.is_last for stage in stages)
        schedule.step(*((ids,) if first else ()), **({"target": ids, "losses": []} if last else {}))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step
