package randomproblem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Pipeline generates a chain of layers whose outputs differ by orders of
// magnitude, on devices that differ in memory and links. Some links may be
// missing, and some layers have no parameters.
func Pipeline(rng *rand.Rand) (planner.Problem, error) {
	count, devices := 3+rng.IntN(7), 2+rng.IntN(3)
	schedule, m := Pick(rng, costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved), 1+rng.Int64N(12)
	if schedule == costmodel.Interleaved && rng.IntN(4) > 0 {
		count, m = max(count, 2*devices), int64(devices)*(1+rng.Int64N(3))
	}
	layers := make([]modelgraph.Layer, count)
	wide := func(most int64) int64 { return int64(math.Exp(rng.Float64() * math.Log(float64(most)))) }
	output := Pick[int64](rng, 1, 1e4, 1e8)
	for i := range layers {
		declared := modelgraph.NotDeclared()
		declared.ActivationBytes, declared.WorkspaceBytes = wide(1e8), wide(1e8)
		declared.OutputBytes = wide(output)
		declared.ForwardSeconds, declared.BackwardSeconds = .01*rng.Float64(), .02*rng.Float64()
		layers[i] = modelgraph.Layer{Name: fmt.Sprintf("u%d", i), Declared: &declared}
		if size := wide(1e8); rng.IntN(8) > 0 {
			layers[i].Params = []modelgraph.Tensor{{Name: "w", Shape: []int64{1 + size/2}, DType: modelgraph.BF16}}
		}
	}
	graph, err := modelgraph.New("random", layers, nil)
	if err != nil {
		return planner.Problem{}, err
	}
	workload := costmodel.Workload{
		Strategy: costmodel.Pipeline, World: int64(devices), Mode: Pick(rng, costmodel.Train, costmodel.Train, costmodel.Infer),
		Schedule: schedule, Batch: m, MicroBatches: m, Precision: costmodel.BF16True,
	}
	if workload.Schedule == costmodel.Interleaved {
		workload.VirtualStages = 2 + int64(rng.IntN(5)/4)
	}
	if workload.Mode == costmodel.Train {
		workload.Optimizer = Pick(rng, costmodel.AdamW, "adamw-foreach", costmodel.SGD)
		workload.Recompute = Pick(rng, costmodel.RecomputeNone, costmodel.RecomputeNone, costmodel.RecomputeFull)
	}
	if workload, err = estimate.Resolve(graph, workload); err != nil {
		return planner.Problem{}, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return planner.Problem{}, err
	}
	table.Comm = costmodel.Comm{Peer: rng.Int64N(1 << 20)}
	problem := planner.Problem{Graph: graph, Costs: table, Topology: randomDevices(rng, table, devices), Objective: Pick(rng, planner.Memory, planner.Time)}
	for workload.Schedule != costmodel.Interleaved && rng.IntN(5) == 0 {
		unit := rng.IntN(count)
		problem.Pins = append(problem.Pins, devicemap.Pin{Pattern: fmt.Sprintf("u%d", unit), Device: min(devices-1, unit*devices/count+rng.IntN(2))})
	}
	if rng.IntN(8) == 0 {
		unit := rng.IntN(count - 1)
		problem.Together = [][]string{{fmt.Sprintf("u%d", unit), fmt.Sprintf("u%d", unit+1)}}
	}
	return problem, nil
}

// randomDevices returns devices with random links. Capacities are around the largest peak of a cut
// into stages with equal numbers of units.
func randomDevices(rng *rand.Rand, table *costmodel.Table, count int) *costmodel.Topology {
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, count)}
	even := make(devicemap.Map, len(table.Units))
	for unit := range even {
		even[unit] = devicemap.Device(unit * count / len(even))
	}
	var need int64
	for _, prediction := range devicemap.Predict(table, topo, even) {
		need = max(need, prediction.Predicted.PeakAllocatedBytes)
	}
	topo.Devices = nil
	sample := func() costmodel.Device {
		return costmodel.Device{
			CapacityBytes: 3<<20 + int64(float64(need)*(.3+1.3*rng.Float64())), ContextBytes: rng.Int64N(1 << 19), WorkspaceBytes: rng.Int64N(1 << 18),
			FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: math.Exp2(25 + 10*rng.Float64()), BytesPerSecond: 1e12, SustainedFLOPS: 8e11, MemoryPower: 0.5},
		}
	}
	same, equal := sample(), rng.IntN(3) == 0
	for range count {
		if !equal {
			same = sample()
		}
		topo.Devices = append(topo.Devices, same)
	}
	if rng.IntN(2) == 0 {
		missing := rng.IntN(3) == 0
		for a := range count {
			for b := range count {
				if a != b && (!missing || rng.IntN(4) != 0) {
					topo.Links = append(topo.Links, costmodel.Link{From: a, To: b, BytesPerSecond: math.Exp2(24 + 12*rng.Float64()), LatencySeconds: 1e-5 * rng.Float64()})
				}
			}
		}
	}
	return topo
}

// Configs of models for pipelines: one with few units, so that tests can try all maps, and two of
// real sizes.
const (
	SixBlocks = `{"model_type": "llama", "hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 4000, "tie_word_embeddings": true}`
	Llama8B   = `{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
		"num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": false}`
	Qwen3B = `{"model_type": "qwen2", "hidden_size": 2048, "intermediate_size": 11008, "num_hidden_layers": 36, "num_attention_heads": 16,
		"num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": true}`
)

// PipelineOf returns the problem of training or running a config's model as a pipeline.
func PipelineOf(t *testing.T, config string, gpus int, workload costmodel.Workload) planner.Problem {
	t.Helper()
	workload.Strategy, workload.World, workload.Precision = costmodel.Pipeline, int64(gpus), costmodel.BF16True
	if workload.Mode == costmodel.Train {
		workload.Optimizer = costmodel.AdamW
	}
	graph, table := Costs(t, []byte(config), workload)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{}
	for range gpus {
		topo.Devices = append(topo.Devices, gpu.Device(workload.Mode))
	}
	return planner.Problem{Graph: graph, Costs: table, Topology: topo}
}

// Near reports values that are equal up to the rounding of a quotient.
func Near(a, b float64) bool {
	diff := a - b
	return diff <= 1e-12*a && -diff <= 1e-12*a
}
