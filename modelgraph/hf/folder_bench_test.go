package hf

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/tables"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// deepSeek is a DeepSeek-V3 checkpoint by its names: fp8 weights with scales, single experts, the
// 62nd layer for multi-token prediction.
func deepSeek(tb testing.TB) (*modelgraph.Graph, *config, *safetensors.Checkpoint) {
	tb.Helper()
	g, _, c, err := fromConfig("config.json", []byte(`{"model_type":"deepseek_v3","architectures":["DeepseekV3ForCausalLM"],"torch_dtype":"bfloat16","quantization_config":{"quant_method":"fp8"}}`))
	if err != nil {
		tb.Fatal(err)
	}
	ck := &safetensors.Checkpoint{Files: []string{"model.safetensors"}}
	add := func(name string, d modelgraph.DType, shape ...int64) {
		ck.Tensors = append(ck.Tensors, safetensors.Tensor{Name: name, DType: d, Shape: shape, End: tables.Elements(shape) * d.Bits() / 8})
	}
	weight := func(name string, shape ...int64) {
		add(name, float8Type, shape...)
		if len(shape) == 2 {
			add(name+"_scale_inv", modelgraph.F32, (shape[0]+127)/128, (shape[1]+127)/128)
		}
	}
	experts := func(layer int) {
		for e := range 256 {
			p := fmt.Sprintf("model.layers.%d.mlp.experts.%d.", layer, e)
			weight(p+"gate_proj.weight", 2048, 7168)
			weight(p+"up_proj.weight", 2048, 7168)
			weight(p+"down_proj.weight", 7168, 2048)
		}
	}
	for _, s := range checkpointOf(g, modelgraph.BF16) {
		if len(s.shape) < 3 {
			weight(s.name, s.shape...)
		}
	}
	for layer := 3; layer <= 61; layer++ {
		experts(layer)
	}
	return g, c, ck
}

// TestDeepSeekNames: 92,000 names find their tensors. BenchmarkDeepSeekNames measures the time.
func TestDeepSeekNames(t *testing.T) {
	g, c, ck := deepSeek(t)
	out, a, err := assign(g, c, ck)
	if err != nil {
		t.Fatal(err)
	}
	if !a.exact() || a.ignored.count != 256*6 || len(out.Warnings) != 3 {
		t.Errorf("%d missing, %d unexpected, %d ignored, warnings %v", a.missing.count, a.unexpected.count, a.ignored.count, out.Warnings)
	}
	if n := out.ParamCount(); n < 671_026_404_352 {
		t.Errorf("%d parameters", n)
	}
}

func BenchmarkDeepSeekNames(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		g, c, ck := deepSeek(b)
		b.StartTimer()
		if _, _, err := assign(g, c, ck); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkShards reads a folder of 200 shards.
func BenchmarkShards(b *testing.B) {
	g, err := FromConfig("config.json", []byte(`{"model_type":"llama","hidden_size":64,"num_hidden_layers":100,"num_attention_heads":4}`))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	write(b, filepath.Join(dir, ConfigName), []byte(`{"model_type":"llama","hidden_size":64,"num_hidden_layers":100,"num_attention_heads":4}`))
	writeShards(b, dir, checkpointOf(g, modelgraph.BF16), 200)
	for b.Loop() {
		if _, err := FromCheckpoint(dir); err != nil {
			b.Fatal(err)
		}
	}
}
