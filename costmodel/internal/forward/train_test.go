package forward

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

// TestTraining checks the peak of forward, loss and backward of a Flux of two double and two single
// blocks with adapters, 256 × 256. Expected are sums of the allocator's requests on an H200 (torch
// 2.11, peft 0.21; measured/how/measure_dreambooth.py with tr), rounded to 512 bytes.
func TestTraining(t *testing.T) {
	text := `{"_class_name":"FluxTransformer2DModel","guidance_embeds":true,"num_layers":2,"num_single_layers":2}`
	for _, c := range []struct {
		batch     int64
		dtype     modelgraph.DType
		recompute bool
		want      int64
	}{
		{1, modelgraph.F32, false, 672452608},
		{2, modelgraph.F32, false, 1381857280},
		{1, modelgraph.BF16, false, 412579328},
		{1, modelgraph.F32, true, 256159232},
		{2, modelgraph.BF16, true, 322886144},
	} {
		graph, err := diffusers.FromConfig("config.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		graph.DType = c.dtype
		run := newTrainee(Parts{Transformer: graph}, Call{Batch: c.batch, Height: 256, Width: 256, Tokens: 256, Text: 512}, Training{
			Rank: 4, Autocast: c.dtype != modelgraph.F32, Recompute: c.recompute,
			Targets: []string{"attn.to_k", "attn.to_q", "attn.to_v", "attn.to_out.0", "attn.add_k_proj", "attn.add_q_proj", "attn.add_v_proj", "attn.to_add_out", "ff.net.0.proj", "ff.net.2", "ff_context.net.0.proj", "ff_context.net.2"},
		})
		run.cache = nil
		out := trainFlux(run.training, run.root, run.call, c.recompute)
		grad := run.loss(&out, 1)
		run.backward(out, grad)
		run.drop(run.angles[:]...)
		run.drop(run.grads...)
		run.drop(out.value, run.variables["target"])
		name := fmt.Sprintf("batch %d, %v, recompute %v", c.batch, c.dtype, c.recompute)
		if diff := float64(run.peak-c.want) / float64(c.want); diff > 5e-4 || diff < -5e-4 {
			t.Errorf("%s: %d, want %d (%+.4f %%)", name, run.peak, c.want, 100*diff)
		}
		if run.live != 0 {
			t.Errorf("%s: %d bytes are alive after backward", name, run.live)
		}
	}
}
