# llama.cpp for the plan of tiny
FROM ./tiny.gguf
PARAMETER num_ctx 131072
PARAMETER num_batch 512
PARAMETER num_gpu 5
