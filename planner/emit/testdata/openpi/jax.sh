#!/bin/sh
# pi0 as devmap planned it; run it in a checkout of openpi.
# GPUs of the plan: 4. A CUDA_VISIBLE_DEVICES that is already set stays, and must name as many.
export CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0,1,2,3}
export XLA_PYTHON_CLIENT_MEM_FRACTION=0.9
exec uv run scripts/train.py "$@" --fsdp-devices 2 --batch-size 32 --ema-decay None
