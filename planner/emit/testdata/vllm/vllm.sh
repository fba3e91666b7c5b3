#!/bin/sh
# vllm for the plan of llama-3.1-8b
export VLLM_PP_LAYER_PARTITION=20,12
exec vllm serve models/llama --tensor-parallel-size 1 --pipeline-parallel-size 2 --data-parallel-size 1 --max-model-len 131072 --max-num-seqs 64 --max-num-batched-tokens 2048 --gpu-memory-utilization 0.92 --kv-cache-dtype fp8 --enforce-eager "$@"
