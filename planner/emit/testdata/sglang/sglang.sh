#!/bin/sh
# sglang for the plan of llama-3.1-8b
exec python -m sglang.launch_server --model-path "${MODEL:?set MODEL to the checkpoint}" --tp 2 --pp-size 1 --dp 1 --context-length 32768 --chunked-prefill-size 4096 --mem-fraction-static 0.699 --max-running-requests 3803 --kv-cache-dtype fp8_e4m3 "$@"
