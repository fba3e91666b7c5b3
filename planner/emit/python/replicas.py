# Every GPU runs the whole model: DDP, FSDP2.


def sharded(model, wrapped, kind):
    """Every block wrapped, the rest in the root, over a mesh of all ranks."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    world, degree = len(JOB["devices"]), JOB["shard_degree"]
    mesh = init_device_mesh(kind, (world // degree, degree), mesh_dim_names=("replicate", "shard")) if degree < world else init_device_mesh(kind, (world,))
    policy = MixedPrecisionPolicy(param_dtype=MIXED, reduce_dtype=torch.float32) if MIXED else MixedPrecisionPolicy()
    for holder, name in wrapped:
        fully_shard(getattr(holder, name), mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def work(kind, device, rank):
    model = adapted(built())
    inner = model.base_model.model if JOB["lora_rank"] else model
    wrapped = blocks(inner)
    for number, (holder, name) in enumerate(wrapped):
        if recomputed(number):
            setattr(holder, name, checkpointed(getattr(holder, name)))
    if JOB["strategy"] != "ddp":
        sharded(model, wrapped, kind)
    filled(model, device)
    inner.tie_weights()
    if JOB["strategy"] == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[device] if kind == "cuda" else None, gradient_as_bucket_view=JOB["gradient_as_bucket_view"])
    return training(model, optimizer_of(model.parameters(), kind), batch(inner.config, device, JOB["batch"]), kind)
