# A map over the GPUs of one process, by Accelerate's hooks.


def placed(model, device):
    """The model on its devices."""
    import accelerate

    where = {path: index if device == "cuda" else "cpu" for path, index in JOB["device_map"].items()}

    def place(name):
        return where[max((path for path in where if path in ("", name) or name.startswith(path + ".")), key=len)]

    drawn(model, place)
    if device == "cpu":
        return accelerate.dispatch_model(model, device_map=where, main_device="cpu", force_hooks=True)
    return accelerate.dispatch_model(model, device_map=where)


def work(device):
    """What is done again and again: a step, a forward, or generation."""
    model = placed(built(), device)
    if JOB["mode"] == "load":
        return lambda: None
    ids = batch(model.config, f"{device}:0" if device == "cuda" else device, JOB["batch"])
    if JOB["mode"] == "train":
        model = adapted(model)
        if JOB["recompute"] == "full":
            if JOB["lora_rank"]:
                model.enable_input_require_grads()
            model.gradient_checkpointing_enable()
        return training(model.train(), optimizer_of(model.parameters(), device), ids, device)

    @torch.no_grad()
    def forward():
        with autocast(device):
            if JOB["new_tokens"]:
                model.generate(input_ids=ids, max_new_tokens=JOB["new_tokens"], min_new_tokens=JOB["new_tokens"], do_sample=False, pad_token_id=0)
            else:
                model(input_ids=ids, use_cache=True)

    return forward


def run(args):
    count = len(JOB["devices"])
    if args.rank is not None:
        sys.exit("--rank: one process runs all GPUs of a device map")
    if args.device == "cuda" and torch.cuda.device_count() < count:
        sys.exit(f"the plan is for {count} GPUs, and CUDA shows {torch.cuda.device_count()}")
    before = shown(count) if args.device == "cuda" else []
    step = work(args.device)
    if args.device == "cuda":
        for index in range(count):
            torch.cuda.reset_peak_memory_stats(index)
    for _ in range(args.steps):
        step()
    return [row | {"device": index} for index, row in enumerate(measured(before))]
