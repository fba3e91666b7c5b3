# A process a GPU: under torchrun, or one rank alone on one GPU.


def join(args):
    """This process among all: its rank, and the GPU that it runs on."""
    import torch.distributed as dist

    world = len(JOB["devices"])
    if args.rank is not None:
        if not 0 <= args.rank < world:
            sys.exit(f"--rank: ranks are 0 to {world - 1}")
        if JOB["strategy"] == "ddp":
            sys.exit("--rank: DDP's reducer needs a real group: torchrun --nproc-per-node " + str(world))
        # Every collective of a fake group returns at once, so that the allocator sees the requests of the real run.
        from torch.testing._internal.distributed.fake_pg import FakeStore

        os.environ |= {"RANK": str(args.rank), "WORLD_SIZE": str(world), "LOCAL_RANK": "0"}
        dist.init_process_group("fake", store=FakeStore(), rank=args.rank, world_size=world)
        return args.rank, 0
    if int(os.environ.get("WORLD_SIZE", "0")) != world:
        sys.exit(f"a process a GPU: torchrun --nproc-per-node {world} {sys.argv[0]}; or one of them alone on one GPU: --rank 0")
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo")
    return dist.get_rank(), int(os.environ["LOCAL_RANK"])


def blocks(model):
    """The modules that must not be split: what holds each, and its name there."""
    kinds = set(model._no_split_modules or [])
    return [(holder, name) for holder in model.modules() for name, child in holder.named_children() if type(child).__name__ in kinds]


def recomputed(number):
    """Whether backward runs this block again: all blocks, none, or those of a list such as 0-5,9."""
    if JOB["recompute"] in ("", "none", "full"):
        return JOB["recompute"] == "full"
    runs = [part.partition("-") for part in JOB["recompute"].split(",")]
    return any(int(first) <= number <= int(last or first) for first, _, last in runs)


def checkpointed(module):
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointImpl, checkpoint_wrapper

    return checkpoint_wrapper(module, checkpoint_impl=CheckpointImpl.NO_REENTRANT)


def filled(model, device):
    """Storage on one device: random parameters, or their shards, and the buffers as they were."""
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    model.to_empty(device=device)
    with torch.no_grad():
        for parameter in model.parameters():
            (parameter.to_local() if hasattr(parameter, "to_local") else parameter).normal_(0, 0.02)
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])


def run(args):
    rank, local = join(args)
    import torch.distributed as dist

    if args.device == "cuda":
        torch.cuda.set_device(local)
    before = shown(1, local) if args.device == "cuda" else []
    step = work(args.device, torch.device("cuda", local) if args.device == "cuda" else torch.device("cpu"), rank)
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats(local)
    for _ in range(args.steps):
        step()
    rows = [row | {"device": rank} for row in measured(before, local)]
    if args.rank is None:
        gathered = [None] * dist.get_world_size()
        dist.all_gather_object(gathered, rows)
        dist.destroy_process_group()
        rows = [row for each in gathered for row in each]
        if rank:  # the first tells of all
            sys.exit(0)
    return rows
