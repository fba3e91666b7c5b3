package hf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

const up = "model.layers.0.mlp.up_proj."

// quantisedFolder replaces the weight [16 8] of one projection.
func packedWeight(more ...stored) func([]stored) []stored {
	return func(ts []stored) []stored { return append(without(up+"weight")(ts), more...) }
}

func st(name string, d modelgraph.DType, shape ...int64) stored {
	return stored{name: name, dtype: d, shape: shape}
}

// others are the warnings without the required one for packed weights.
func others(t *testing.T, g *modelgraph.Graph) []string {
	t.Helper()
	var ws []string
	for _, w := range g.Warnings {
		if !strings.Contains(w, fmt.Sprintf("counted as the elements that are stored: %d, of %s tensors", g.ParamCount(), g.Quantized)) {
			ws = append(ws, w)
		}
	}
	if len(ws) == len(g.Warnings) || g.Quantized == "" {
		t.Errorf("%q (%s) do not say that stored elements are counted", g.Warnings, g.Quantized)
	}
	return ws
}

// TestQuantised: a layer has the file's bytes and stored names, in every format.
func TestQuantised(t *testing.T) {
	for name, tensors := range map[string][]stored{
		"fp8":  {st(up+"weight", float8Type, 16, 8), st(up+"weight_scale_inv", modelgraph.F32, 1, 1)},
		"gptq": {st(up+"qweight", int32Type, 1, 16), st(up+"qzeros", int32Type, 1, 2), st(up+"scales", modelgraph.F16, 1, 16), st(up+"g_idx", int32Type, 8)},
		"awq":  {st(up+"qweight", int32Type, 8, 2), st(up+"qzeros", int32Type, 1, 2), st(up+"scales", modelgraph.F16, 1, 16)},
		"nf4": {
			st(up+"weight", uint8Type, 64, 1), st(up+"weight.absmax", uint8Type, 2), st(up+"weight.quant_map", modelgraph.F32, 16),
			st(up+"weight.nested_absmax", modelgraph.F32, 1), st(up+"weight.nested_quant_map", modelgraph.F32, 256),
			st(up+"weight.quant_state.bitsandbytes__nf4", uint8Type, 80),
		},
		"int8":               {st(up+"weight", typeNamed("I8"), 16, 8), st(up+"SCB", modelgraph.F32, 16), st(up+"weight_format", uint8Type)},
		"compressed-tensors": {st(up+"weight_packed", int32Type, 16, 1), st(up+"weight_scale", modelgraph.BF16, 16, 1), st(up+"weight_shape", int64Type, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := llamaFolder(t, tinyLlama, packedWeight(tensors...))
			g := fixtures.Must(FromCheckpoint(dir))(t)
			if others(t, g) != nil {
				t.Error(g.Warnings)
			}
			i, _ := layerNamed(g, "model.layers.0.mlp")
			var got, want int64
			var names []string
			for _, p := range g.Layers[i].Params {
				names = append(names, p.Name)
				if strings.HasPrefix(p.Name, "up_proj.") {
					got += p.Bytes
				}
			}
			for _, s := range tensors {
				want += s.bytes()
				if !slices.Contains(names, strings.TrimPrefix(s.name, "model.layers.0.mlp.")) {
					t.Errorf("%s is not in %v", s.name, names)
				}
			}
			if got != want || len(names) != 2+len(tensors) {
				t.Errorf("%d bytes in %v, want %d", got, names, want)
			}
			checkParts(t, dir, g)
		})
	}
}

// TestQuantisedOnlyNearby: a parameter that is missing elsewhere stays and is reported.
func TestQuantisedOnlyNearby(t *testing.T) {
	edit := packedWeight(st(up+"qweight", int32Type, 1, 16), st(up+"scales", modelgraph.F16, 1, 16))
	g := fixtures.Must(FromCheckpoint(llamaFolder(t, tinyLlama, func(ts []stored) []stored { return without("layers.1.mlp.up_proj.weight")(edit(ts)) })))(t)
	if ws := others(t, g); len(ws) != 1 || !strings.Contains(ws[0], `newly initialised: "model.layers.1.mlp.up_proj.weight"`) {
		t.Error(g.Warnings)
	}
	paramOf(t, g, "model.layers.1.mlp.up_proj.weight")
}

// TestQuantisedMisfit: eight-bit floats are one a weight, so that a wrong shape is a wrong config.
func TestQuantisedMisfit(t *testing.T) {
	_, err := FromCheckpoint(llamaFolder(t, tinyLlama, packedWeight(st(up+"weight", float8Type, 24, 8), st(up+"weight_scale_inv", modelgraph.F32, 1, 1))))
	if err == nil || !strings.Contains(err.Error(), "F8_E4M3[24 8] does not fill") {
		t.Errorf("%v", err)
	}
}

// TestMXFP4: gpt_oss keeps blocks and scales in place of the experts.
func TestMXFP4(t *testing.T) {
	config := `{"model_type":"gpt_oss","hidden_size":64,"intermediate_size":64,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":8,
		"num_key_value_heads":1,"vocab_size":32,"num_local_experts":4,"quantization_config":{"quant_method":"mxfp4"}}`
	g, err := FromCheckpoint(llamaFolder(t, config, func(ts []stored) []stored {
		const e = "model.layers.0.mlp.experts."
		ts = without(e + "gate_up_proj")(without(e + "down_proj")(ts))
		return append(ts, st(e+"gate_up_proj_blocks", uint8Type, 4, 128, 2, 16), st(e+"gate_up_proj_scales", uint8Type, 4, 128, 2),
			st(e+"down_proj_blocks", uint8Type, 4, 64, 2, 16), st(e+"down_proj_scales", uint8Type, 4, 64, 2))
	}))
	if err != nil {
		t.Fatal(err)
	}
	i, _ := layerNamed(g, "model.layers.0.mlp")
	var names []string
	for _, p := range g.Layers[i].Params {
		names = append(names, p.Name)
	}
	if want := "router.weight router.bias experts.gate_up_proj_bias experts.down_proj_bias experts.gate_up_proj_blocks"; !strings.HasPrefix(strings.Join(names, " "), want) || len(names) != 8 {
		t.Error(names)
	}
	if others(t, g) != nil {
		t.Error(g.Warnings)
	}
}

// TestFP8Experts: scales of experts are stacked as their weights are; packed experts stay apart.
func TestFP8Experts(t *testing.T) {
	config := `{"model_type":"qwen3_moe","hidden_size":8,"moe_intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":2,"head_dim":4,
		"num_key_value_heads":1,"vocab_size":32,"num_experts":3,"num_experts_per_tok":2,"quantization_config":{"quant_method":"fp8"}}`
	const e = "model.layers.0.mlp.experts."
	for name, add := range map[string]func(w string) []stored{
		"fp8": func(w string) []stored {
			return []stored{st(w+".weight", float8Type, 4, 8), st(w+".weight_scale_inv", modelgraph.F32, 1, 1)}
		},
		"gptq": func(w string) []stored {
			return []stored{st(w+".qweight", int32Type, 1, 4), st(w+".scales", modelgraph.F16, 1, 4)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := llamaFolder(t, config, func(ts []stored) []stored {
				ts = without(e + "gate_up_proj")(without(e + "down_proj")(ts))
				for i := range 3 {
					for _, w := range []string{"gate_proj", "up_proj"} {
						ts = append(ts, add(fmt.Sprintf("%s%d.%s", e, i, w))...)
					}
					down := add(fmt.Sprintf("%s%d.down_proj", e, i))
					if name == "fp8" {
						slices.Reverse(down[0].shape)
					}
					ts = append(ts, down...)
				}
				return ts
			})
			g := fixtures.Must(FromCheckpoint(dir))(t)
			if others(t, g) != nil {
				t.Error(g.Warnings)
			}
			if name == "fp8" {
				w, s := paramOf(t, g, e+"gate_up_proj"), paramOf(t, g, e+"gate_up_proj_scale_inv")
				if w.DType != float8Type || w.Bytes != 3*8*8 || !slices.Equal(s.Shape, []int64{3, 2, 1}) {
					t.Errorf("weight %v%v, scales %v%v", w.DType, w.Shape, s.DType, s.Shape)
				}
			} else {
				paramOf(t, g, e+"2.up_proj.qweight")
			}
			checkParts(t, dir, g)
		})
	}
}
