package forward

import (
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

const (
	fluxDev     = `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true}`
	sd35Large   = `{"_class_name":"SD3Transformer2DModel","num_layers":38,"num_attention_heads":38,"caption_projection_dim":2432,"pos_embed_max_size":192,"qk_norm":"rms_norm"}`
	sd35Medium  = `{"_class_name":"SD3Transformer2DModel","num_layers":24,"num_attention_heads":24,"caption_projection_dim":1536,"pos_embed_max_size":384,"qk_norm":"rms_norm","dual_attention_layers":[0,1,2,3,4,5,6,7,8,9,10,11,12]}`
	sd3Medium   = `{"_class_name":"SD3Transformer2DModel","num_layers":24,"num_attention_heads":24,"caption_projection_dim":1536,"pos_embed_max_size":192}`
	wan1B       = `{"_class_name":"WanTransformer3DModel","num_attention_heads":12,"ffn_dim":8960,"num_layers":30}`
	wan14B      = `{"_class_name":"WanTransformer3DModel"}`
	cog2B       = `{"_class_name":"CogVideoXTransformer3DModel"}`
	cog5B       = `{"_class_name":"CogVideoXTransformer3DModel","num_attention_heads":48,"num_layers":42,"use_rotary_positional_embeddings":true}`
	qwenImage20 = `{"_class_name":"QwenImageTransformer2DModel"}`
	hunyuan13B  = `{"_class_name":"HunyuanVideoTransformer3DModel"}`
)

// TestForward compares peaks with diffusers' own forward on the meta device, with weak references
// to storages (fixtures/oracle/forwards.py).
func TestForward(t *testing.T) {
	for _, c := range []struct {
		config string
		call   Call
		want   int64
	}{
		{fluxDev, Call{Batch: 1, Tokens: 4096, Text: 512}, 490817024},
		{fluxDev, Call{Batch: 1, Tokens: 16384, Text: 512}, 1788577280},
		{fluxDev, Call{Batch: 4, Tokens: 4096, Text: 512}, 1948940288},
		{fluxDev, Call{Batch: 1, Tokens: 48 * 85, Text: 256}, 460026368},
		{sd35Large, Call{Batch: 2, Height: 1024, Width: 1024, Text: 333}, 534296064},
		{sd35Large, Call{Batch: 1, Height: 1024, Width: 1536, Text: 333}, 396910592},
		{sd35Medium, Call{Batch: 2, Height: 1024, Width: 1024, Text: 333}, 365070848},
		{sd3Medium, Call{Batch: 2, Height: 1024, Width: 1024, Text: 333}, 339849728},
		{wan1B, Call{Batch: 1, Height: 480, Width: 832, Frames: 81, Text: 512}, 1603465728},
		{wan1B, Call{Batch: 2, Height: 480, Width: 832, Frames: 33, Text: 512}, 1373868544},
		{wan14B, Call{Batch: 1, Height: 480, Width: 832, Frames: 81, Text: 512}, 3720685056},
		{cog2B, Call{Batch: 2, Height: 480, Width: 720, Frames: 49, Text: 226}, 1648269824},
		{cog5B, Call{Batch: 2, Height: 480, Width: 720, Frames: 49, Text: 226}, 2837439488},
		{cog5B, Call{Batch: 1, Height: 480, Width: 720, Frames: 25, Text: 226}, 771065856},
		{hunyuan13B, Call{Batch: 1, Height: 544, Width: 960, Frames: 33, Text: 256}, 2071234048},
		{hunyuan13B, Call{Batch: 1, Height: 512, Width: 320, Frames: 17, Text: 256}, 377042944},
		{qwenImage20, Call{Batch: 1, Tokens: 83 * 83, Text: 512}, 666500096},
		{qwenImage20, Call{Batch: 1, Tokens: 4096, Text: 77}, 389398016},
	} {
		graph := fixtures.Must(diffusers.FromConfig("config.json", []byte(c.config)))(t)
		cast(graph)
		cost := fixtures.Must(Of(graph, c.call, 2))(t)
		if diff := float64(cost.PeakBytes-c.want) / float64(c.want); diff > 1e-4 || diff < -1e-4 {
			t.Errorf("%s %+v: %d, want %d (%+.4f %%)", graph.Class, c.call, cost.PeakBytes, c.want, 100*diff)
		}
	}
}

// cast gives all tensors one type, as module.to(bfloat16) does.
func cast(graph *modelgraph.Graph) {
	for i := range graph.Layers {
		for _, tensors := range [][]modelgraph.Tensor{graph.Layers[i].Params, graph.Layers[i].Buffers} {
			for j := range tensors {
				tensors[j].DType = modelgraph.BF16
			}
		}
	}
}
