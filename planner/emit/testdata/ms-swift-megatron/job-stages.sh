#!/bin/sh
# devmap's plan of m: pipeline on 8 GPUs of 2 hosts; run it on each
set -eu
export NNODES=2 NPROC_PER_NODE=4 CUDA_DEVICE_MAX_CONNECTIONS=1
# The GPUs of this host, or those of CUDA_VISIBLE_DEVICES. Without nvidia-smi they are not counted.
if shown=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU '); then
  [ -z "${CUDA_VISIBLE_DEVICES+given}" ] || shown=$(printf '%s' "$CUDA_VISIBLE_DEVICES" | tr , '\n' | grep -c .) || :
  if [ "$shown" -lt "$NPROC_PER_NODE" ]; then
    echo "the plan is for $NPROC_PER_NODE GPUs a host, and this one shows $shown: GPUs $shown to $((NPROC_PER_NODE - 1)) are missing" >&2
    exit 2
  fi
fi
# Slurm, Kubeflow's Trainer and Kubernetes say the place of this host.
MASTER_ADDR=${MASTER_ADDR:-${PET_MASTER_ADDR:?the name of the first host}}
MASTER_PORT=${MASTER_PORT:-${PET_MASTER_PORT:-29500}}
NODE_RANK=${NODE_RANK:-${SLURM_NODEID:-${PET_NODE_RANK:-${JOB_COMPLETION_INDEX:?the number of this host, from 0}}}}
export MASTER_ADDR MASTER_PORT NODE_RANK
exec megatron sft \
  --model MODEL \
  --dataset DATASET \
  --tuner_type full \
  --tensor_model_parallel_size 2 \
  --pipeline_model_parallel_size 2 \
  --pipeline_model_parallel_layout 'Et*14|t*18L' \
  --sequence_parallel true \
  --micro_batch_size 2 \
  --global_batch_size 32 \
  --max_length 4096 \
  --use_distributed_optimizer true \
  --recompute_granularity full \
  --recompute_method uniform \
  --recompute_num_layers 1 \
  --bf16 true \
  "$@"
