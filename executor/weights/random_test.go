package weights

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestRandom pins random values: a saved figure stays comparable.
func TestRandom(t *testing.T) {
	source := Random(tiny(t, tinyConfig), 1)
	for name, want := range map[string]string{
		"model.embed_tokens.weight":             "470f8123218915cc",
		"lm_head.weight":                        "470f8123218915cc",
		"model.layers.0.mlp.gate_proj.weight":   "aec257503fd36df2",
		"model.layers.0.input_layernorm.weight": "4f05df05f8da9356",
	} {
		got, err := streamed(source, name, modelgraph.F32)
		if sum := fmt.Sprintf("%x", sha256.Sum256(got))[:16]; err != nil || sum != want {
			t.Errorf("%s: %v, %s, want %s", name, err, sum, want)
		}
	}
}

// TestRandomAlone: a parameter's values depend on name, shape and seed, not on
// what else there is.
func TestRandomAlone(t *testing.T) {
	const name = "model.layers.0.mlp.gate_proj.weight"
	generate := func(config string, seed uint64) []byte {
		got := fixtures.Must(streamed(Random(tiny(t, config), seed), name, modelgraph.F32))(t)
		return got
	}
	base := generate(tinyConfig, 1)
	if more := strings.Replace(tinyConfig, `"num_hidden_layers": 1`, `"num_hidden_layers": 3`, 1); !bytes.Equal(base, generate(more, 1)) {
		t.Error("more layers change a layer")
	}
	if bytes.Equal(base, generate(tinyConfig, 2)) {
		t.Error("another seed gives the same")
	}
	if wide := strings.Replace(tinyConfig, `"intermediate_size": 12`, `"intermediate_size": 24`, 1); bytes.Equal(base, generate(wide, 1)[:len(base)]) {
		t.Error("another shape gives the same")
	}
	rounded, err := streamed(Random(tiny(t, tinyConfig), 1), name, modelgraph.BF16)
	if err != nil || !bytes.Equal(rounded, convert(nil, base, modelgraph.F32, modelgraph.BF16)) {
		t.Errorf("%v: bf16 values are not the fp32 ones rounded", err)
	}
}

// TestDistribution: values are normal, of deviation 0.02. The mean of 2²² values has a deviation of
// 1e-5, the fourth moment (3 for a normal distribution) one of 0.005.
func TestDistribution(t *testing.T) {
	got := fixtures.Must(streamed(Random(tiny(t, bigConfig), 5), "model.embed_tokens.weight", modelgraph.F32))(t)
	var sum, squares, fourth float64
	count := float64(len(got) / 4)
	for ; len(got) > 0; got = got[4:] {
		value := float64(math.Float32frombits(binary.LittleEndian.Uint32(got)))
		sum += value
		squares += value * value
		fourth += value * value * value * value
	}
	variance := squares / count
	if mean := sum / count; math.Abs(mean) > 5e-5 || math.Abs(math.Sqrt(variance)-0.02) > 5e-5 || math.Abs(fourth/count/variance/variance-3) > 0.03 {
		t.Errorf("mean %v, deviation %v, kurtosis %v", mean, math.Sqrt(variance), fourth/count/variance/variance)
	}
}

// TestConstants: norms begin as the identity, whichever way they are written,
// and biases as nothing; all else is random.
func TestConstants(t *testing.T) {
	for family := range families {
		graph := tiny(t, configFor(family))
		source := Random(graph, 1)
		for _, entry := range Parameters(graph, modelgraph.F32) {
			got := fixtures.Must(streamed(source, entry.Name, modelgraph.F32))(t)
			norm := strings.Contains(entry.Name, "norm") || strings.Contains(entry.Name, "ln_") || strings.Contains(entry.Name, "LayerNorm")
			value := float32(1)
			if strings.HasSuffix(entry.Name, "bias") || norm && strings.HasPrefix(family, "gemma") {
				value = 0
			}
			same := bytes.Equal(got, bytes.Repeat(appendValues(nil, []float32{value}, modelgraph.F32), len(got)/4))
			if want := norm || value == 0; same != want {
				t.Errorf("%s: %s is %v throughout: %v, want %v", family, entry.Name, value, same, want)
			}
		}
	}
}
