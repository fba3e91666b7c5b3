//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cpu"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// How many ways to cut each model there are, and what draws them.
var (
	cuts   = flag.Int("cuts", 1, "ways to cut each model")
	drawer = flag.Uint64("seed", 12, "of the cuts")
)

// shared assigns the devices of a program to all GPUs round-robin.
type shared struct{ options executor.GPUOptions }

func (shared) Name() string { return "cuda" }

func (shared shared) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	gpus, err := GPUs()
	if err != nil {
		return nil, err
	}
	for i := range bound.Program.Devices {
		shared.options.Devices = append(shared.options.Devices, i%len(gpus))
	}
	backend, err := New(shared.options)
	if err != nil {
		return nil, err
	}
	return backend.Open(ctx, bound)
}

// holding keeps the GPUs' contexts for as long as the test runs: to make one takes
// longer than to run a small model.
func holding(t *testing.T) {
	t.Helper()
	gpus := described(t)
	for i := range gpus {
		context := fixtures.Must(gpus[i].Retain())(t)
		t.Cleanup(func() {
			if err := context.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGPUBits: however a model is cut, a GPU makes the bits that it makes uncut.
func TestGPUBits(t *testing.T) {
	onGPU(t)
	holding(t)
	for _, transport := range []executor.Transport{executor.PeerTransport, executor.HostTransport} {
		t.Run(string(transport), func(t *testing.T) {
			if err := backendtest.Bits(shared{executor.GPUOptions{Transport: transport}}, t.TempDir(), *cuts, *drawer); err != nil {
				t.Error(err)
			}
		})
	}
}

// others are models of what no family has that small: rotations that are scaled,
// widths of heads that kernels are apart for, caches of more than one part.
var others = map[string]string{
	"dynamic": `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":96,"max_position_embeddings":6,"rope_scaling":{"rope_type":"dynamic","factor":2.0}}`,
	"yarn":    `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":96,"max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":16}}`,
	"llama3":  `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":96,"max_position_embeddings":64,"rope_scaling":{"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,"original_max_position_embeddings":16}}`,
	"wide":    `{"model_type":"gemma","hidden_size":64,"intermediate_size":72,"num_hidden_layers":2,"num_attention_heads":2,"num_key_value_heads":1,"head_dim":256,"vocab_size":90}`,
	"eighty":  `{"model_type":"llama","hidden_size":240,"intermediate_size":88,"num_hidden_layers":2,"num_attention_heads":3,"num_key_value_heads":1,"vocab_size":90}`,
	"long":    `{"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":96,"max_position_embeddings":2048}`,
}

// TestGPUFamilies holds what a GPU makes of every family, in every way of running
// it, to what the CPU makes: in fp32 to 1e-5, in bf16 to the distance between the
// CPU's own and fp32.
func TestGPUFamilies(t *testing.T) {
	onGPU(t)
	holding(t)
	families := maps.Clone(backendtest.Families)
	maps.Copy(families, others)
	for _, family := range slices.Sorted(maps.Keys(families)) {
		graph := fixtures.Must(backendtest.Graph(families[family]))(t)
		seq := int64(9)
		if family == "long" {
			seq = 700
		}
		workloads := backendtest.Workloads()
		adamw := workloads["fp32"] // that is of SGD
		adamw.Optimizer = costmodel.AdamW
		workloads["fp32 adamw"] = adamw
		for _, way := range slices.Sorted(maps.Keys(workloads)) {
			wanted := workloads[way]
			if wanted.Mode == costmodel.Load || backendtest.Forwards(family) && (wanted.Mode == costmodel.Train || wanted.NewTokens > 0) {
				continue
			}
			wanted.Seq = seq
			t.Run(family+"/"+way, func(t *testing.T) { compareResults(t, graph, wanted) })
		}
	}
}

// compareResults runs a model on the processor and on a GPU, and compares the results.
func compareResults(t *testing.T, graph *modelgraph.Graph, wanted costmodel.Workload) {
	t.Helper()
	cut := backendtest.Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: 2}
	got := fixtures.Must(backendtest.Run(shared{}, graph, wanted, cut, t.TempDir()))(t)
	reference := func(precision costmodel.Precision) backendtest.Made {
		of := wanted
		of.Precision = precision
		made := fixtures.Must(backendtest.Run(cpu.New(), graph, of, cut, t.TempDir()))(t)
		return made
	}
	exact := reference(costmodel.FP32True)
	limits := make(map[string]float64)
	if wanted.Precision != costmodel.FP32True {
		limits = apart(t, reference(wanted.Precision), exact)
	}
	var worst []string
	for name, distance := range apart(t, got, exact) {
		limit := max(1e-5, 2*limits[name])
		if limits[name] > 0 && strings.HasPrefix(name, "loss") { // one number: how near it comes is luck
			limit = max(limit, 1e-4)
		}
		if !(distance <= limit) {
			t.Errorf("%s is %.2e apart, allowed are %.1e", name, distance, limit)
		}
		worst = append(worst, fmt.Sprintf("%.1e %s (limit %.1e)", distance, name, limit))
	}
	slices.Sort(worst)
	t.Log(strings.Join(worst, "; "))
	if wanted.Precision == costmodel.FP32True && !bytes.Equal(got["tokens"], exact["tokens"]) {
		t.Errorf("tokens are %s, want %s", got["tokens"], exact["tokens"])
	}
}

// apart are the distances of what two runs made, by part: ‖got − want‖ / ‖want‖ over
// all of it, so that a gradient that is 0 but for rounding counts for what it is.
func apart(t *testing.T, got, want backendtest.Made) map[string]float64 {
	t.Helper()
	distances := make(map[string]float64)
	for part := range want {
		switch {
		case part == "tokens":
		case strings.HasPrefix(part, "loss"):
			distances[part] = distance(number(t, got[part]), number(t, want[part]))
		case len(want[part]) > 0:
			distances[part] = distance(values(t, got[part]), values(t, want[part]))
		}
	}
	return distances
}

func number(t *testing.T, text []byte) []float64 {
	t.Helper()
	value := fixtures.Must(strconv.ParseFloat(string(text), 64))(t)
	return []float64{value}
}

func distance(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var apart, norm float64
	for i := range want {
		apart += (got[i] - want[i]) * (got[i] - want[i])
		norm += want[i] * want[i]
	}
	return math.Sqrt(apart / max(norm, math.SmallestNonzeroFloat64))
}

// values are all numbers of a file of tensors, by their names. Master weights do not
// count: fp32 has none.
func values(t *testing.T, data []byte) (all []float64) {
	t.Helper()
	tensors := fixtures.Must(safetensors.ReadTensors(bytes.NewReader(data), int64(len(data)), "made"))(t)
	slices.SortFunc(tensors, func(one, other safetensors.Tensor) int { return strings.Compare(one.Name, other.Name) })
	for _, tensor := range tensors {
		if strings.HasSuffix(tensor.Name, ".master") {
			continue
		}
		raw := data[tensor.Begin:tensor.End]
		for size := int(tensor.DType.Bits() / 8); len(raw) > 0; raw = raw[size:] {
			wide := make([]byte, 4)
			copy(wide[4-size:], raw[:size])
			all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(wide))))
		}
	}
	return all
}
