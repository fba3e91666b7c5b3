#!/bin/sh
# devmap's plan of m: pipeline on 8 GPUs of 2 hosts; run it on one host of a cluster of Ray
set -eu
export CUDA_DEVICE_MAX_CONNECTIONS=1
exec python3 -m verl.trainer.main_ppo --config-name ppo_megatron_trainer \
  trainer.nnodes=2 \
  trainer.n_gpus_per_node=4 \
  actor_rollout_ref.actor.ppo_mini_batch_size=32 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 \
  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=2 \
  actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2 \
  actor_rollout_ref.actor.megatron.sequence_parallel=true \
  actor_rollout_ref.actor.megatron.use_distributed_optimizer=true \
  '+actor_rollout_ref.actor.megatron.override_transformer_config.pipeline_model_parallel_layout=Et*14|t*18L' \
  actor_rollout_ref.actor.megatron.override_transformer_config.recompute_granularity=full \
  actor_rollout_ref.actor.megatron.override_transformer_config.recompute_method=uniform \
  actor_rollout_ref.actor.megatron.override_transformer_config.recompute_num_layers=1 \
  "$@"
