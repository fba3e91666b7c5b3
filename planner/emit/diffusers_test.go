package emit_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// TestPipeline: calls of diffusers and flags of xDiT, of one GPU and of four.
func TestPipeline(t *testing.T) {
	for _, c := range []struct {
		engine, asked string
		devices       int
		want, fault   string
	}{
		{
			"diffusers", `{"class":"FluxPipeline","height":1024,"width":768,"steps":28,"batch":1,"frames":1,"offload":"group","vae_tiling":true}`, 1,
			"import torch\nfrom diffusers import FluxPipeline\n\npipe = FluxPipeline.from_pretrained(\"dir\", torch_dtype=torch.bfloat16)\npipe.enable_group_offload(onload_device=torch.device(\"cuda\"), offload_device=torch.device(\"cpu\"),\n                          offload_type=\"block_level\", num_blocks_per_group=1)\npipe.vae.enable_tiling()\narguments = dict(height=1024, width=768, num_inference_steps=28)\n", "",
		},
		{
			"diffusers", `{"class":"WanPipeline","height":480,"width":832,"steps":50,"batch":2,"frames":81,"vae_slicing":true,"vae_precision":"fp32"}`, 1,
			"import torch\nfrom diffusers import AutoencoderKLWan, WanPipeline\n\nvae = AutoencoderKLWan.from_pretrained(\"dir\", subfolder=\"vae\", torch_dtype=torch.float32)\npipe = WanPipeline.from_pretrained(\"dir\", vae=vae, torch_dtype=torch.bfloat16)\npipe.to(\"cuda\")\npipe.vae.enable_slicing()\narguments = dict(height=480, width=832, num_inference_steps=50, num_frames=81, num_videos_per_prompt=2)\n", "",
		},
		{
			"diffusers", `{"class":"StableDiffusionXLImg2ImgPipeline","height":1024,"width":1024,"steps":50,"batch":1,"frames":1}`, 1,
			"import torch\nfrom diffusers import StableDiffusionXLImg2ImgPipeline\n\npipe = StableDiffusionXLImg2ImgPipeline.from_pretrained(\"dir\", torch_dtype=torch.bfloat16)\npipe.to(\"cuda\")\narguments = dict(num_inference_steps=50)\n", "",
		},
		{
			"xdit", `{"class":"FluxPipeline","height":1024,"width":1024,"steps":28,"batch":1,"frames":1,"ulysses":2,"ring":2,"cfg_degree":1,"fully_shard_degree":4}`, 4,
			"--height 1024 --width 1024 --num_inference_steps 28 --ulysses_degree 2 --ring_degree 2 --fully_shard_degree 4\n", "",
		},
		{
			"xdit", `{"class":"FluxPipeline","height":1024,"width":1024,"steps":28,"batch":1,"frames":1,"pipefusion":4,"attn_layer_num_for_pp":[15,15,15,12]}`, 4,
			"--height 1024 --width 1024 --num_inference_steps 28 --pipefusion_parallel_degree 4 --attn_layer_num_for_pp 15 15 15 12\n", "",
		},
		{
			"xdit", `{"class":"WanPipeline","height":480,"width":832,"steps":50,"frames":81,"cfg_degree":2,"offload":"model"}`, 2,
			"--height 480 --width 832 --num_inference_steps 50 --num_frames 81 --use_cfg_parallel --enable_model_cpu_offload\n", "",
		},
		{"diffusers", `{"class":"FluxPipeline"}`, 4, "", "emit --for xdit"},
		{"xdit", `{"class":"FluxPipeline","pipefusion":2,"attn_layer_num_for_pp":[7,-1]}`, 2, "", "is no number of blocks for each of 2 stages"},
		{"xdit", `{"class":"FluxPipeline","pipefusion":3,"attn_layer_num_for_pp":[7,1]}`, 3, "", "is no number of blocks for each of 3 stages"},
		{"xdit", `{"class":"FluxPipeline","offload":"group"}`, 1, "", "emit --for diffusers"},
		{"diffusers", `{"class":"FluxPipeline","offload":"zzz"}`, 1, "", `pipeline.offload "zzz" is unknown`},
		{"xdit", `{"class":"FluxPipeline","offload":"zzz"}`, 1, "", `pipeline.offload "zzz" is unknown`},
		{"diffusers", `{"class":"class"}`, 1, "", `pipeline.class "class" is no class of Python`},
		{"diffusers", `{"class":"x; import os"}`, 1, "", "is no class of Python"},
		{"xdit", "", 1, "", "is of no diffusion pipeline"},
	} {
		plan := &devicemap.Plan{Pipeline: []byte(c.asked), Devices: make([]devicemap.Prediction, c.devices)}
		plan.Model.Name, plan.Model.Source = "m", "dir"
		var text bytes.Buffer
		err := target(t, c.engine).Write(&text, &emit.Input{Plan: plan})
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s %s: %v, want %q", c.engine, c.asked, err, c.fault)
			}
			continue
		}
		if err != nil || text.String() != c.want {
			t.Errorf("%s %s: %v\n%s want\n%s", c.engine, c.asked, err, text.String(), c.want)
		}
		if usage, _ := target(t, c.engine).Usage(&emit.Input{Plan: plan}, "f.py"); !strings.Contains(usage, "f") {
			t.Errorf("usage %q", usage)
		}
	}
}

// TestTrainingPipeline: every target but diffusers refuses a plan of training and names
// diffusers, which says the program's whole command.
func TestTrainingPipeline(t *testing.T) {
	plan := &devicemap.Plan{Pipeline: []byte(`{"class":"FluxPipeline","height":512,"width":512,"batch":4,"cache_latents":true}`), Devices: make([]devicemap.Prediction, 2)}
	plan.Model.Name, plan.Model.Source = "m", "a dir"
	plan.Workload = costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.DDP, MicroBatches: 2, LoRARank: 8, LoRATargets: []string{"attn.to_k", "x y"}, Precision: costmodel.FP16Mixed, Recompute: costmodel.RecomputeFull}
	const command = "accelerate launch --num_processes 2 train_dreambooth_lora_flux.py --pretrained_model_name_or_path 'a dir' --instance_data_dir DATA --instance_prompt PROMPT --output_dir OUTPUT --resolution 512 --train_batch_size 2 --rank 8 --lora_layers 'attn.to_k,x y' --gradient_accumulation_steps 2 --mixed_precision fp16 --gradient_checkpointing --cache_latents"
	for _, to := range emit.Targets() {
		err := to.Write(&bytes.Buffer{}, &emit.Input{Plan: plan})
		want := "emit --for diffusers"
		if to.Name == "diffusers" {
			want = command
		}
		if err == nil || !strings.HasSuffix(strings.TrimSuffix(err.Error(), " prints its command"), want) || strings.Contains(err.Error(), "xdit") {
			t.Errorf("%s: %v, want %q", to.Name, err, want)
		}
	}
}

// TestPipelineUsage: what a pipeline begins with is an argument.
func TestPipelineUsage(t *testing.T) {
	for class, want := range map[string]string{
		"FluxPipeline": "pipe(\"a prompt\", **arguments)", "FluxFillPipeline": "image=image, mask_image=mask, **", "WanImageToVideoPipeline": "image=image, **",
	} {
		plan := &devicemap.Plan{Pipeline: []byte(`{"class":"` + class + `"}`), Devices: make([]devicemap.Prediction, 1)}
		if usage, _ := target(t, "diffusers").Usage(&emit.Input{Plan: plan}, "f.py"); !strings.Contains(usage, want) {
			t.Errorf("%s: %q, want %q", class, usage, want)
		}
	}
}
