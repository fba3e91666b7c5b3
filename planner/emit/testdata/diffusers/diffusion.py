import torch
from diffusers import FluxPipeline

pipe = FluxPipeline.from_pretrained("dir", torch_dtype=torch.bfloat16)
pipe.enable_group_offload(onload_device=torch.device("cuda"), offload_device=torch.device("cpu"),
                          offload_type="block_level", num_blocks_per_group=1)
pipe.vae.enable_tiling()
arguments = dict(height=1024, width=768, num_inference_steps=28)
