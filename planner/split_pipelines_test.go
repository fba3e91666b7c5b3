package planner_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
)

// TestSplitPipelines compares the solvers of pipelines with a split backward, and of those that offload
// activations, with all maps: small models under devmap's engine, on GPUs with different budgets.
func TestSplitPipelines(t *testing.T) {
	t.Parallel()
	var c tally
	for seed := range uint64(160) {
		rng := rand.New(rand.NewPCG(seed, 45))
		kind, offloads := costmodel.ScheduleKinds()[3+rng.IntN(4)], seed >= 80
		if offloads {
			kind = costmodel.ScheduleKinds()[rng.IntN(7)]
		}
		p, err := splitProblem(rng, kind, offloads)
		if err != nil {
			t.Fatal(seed, err)
		}
		c.sampled++
		if fault := c.hold(t.Context(), p); fault != "" && c.faults() < 20 {
			t.Errorf("seed %d: %s, %s, %d devices, %d units, %d micro-batches: %s", seed, kind, p.Objective, len(p.Topology.Devices), len(p.Graph.Units), p.Costs.Workload.MicroBatches, fault)
		}
	}
	t.Log(c.String())
	if c.faults() > 0 || 2*c.optimal < c.solved || c.solved < 80 {
		t.Errorf("%d faults; %d of %d solved are proved", c.faults(), c.optimal, c.solved)
	}
}

func splitProblem(rng *rand.Rand, kind costmodel.ScheduleKind, offloads bool) (*planner.Problem, error) {
	config := fmt.Sprintf(`{"model_type":"llama","hidden_size":64,"intermediate_size":%d,"num_hidden_layers":%d,"num_attention_heads":4,"vocab_size":%d,"tie_word_embeddings":%t,"max_position_embeddings":64}`,
		64+32*rng.IntN(8), 3+rng.IntN(4), 256+512*rng.IntN(4), rng.IntN(2) == 0)
	graph, err := hf.FromConfig("small", []byte(config))
	if err != nil {
		return nil, err
	}
	devices, m := 2+rng.IntN(2), 1+rng.Int64N(9)
	moved := ""
	if offloads {
		moved = []string{costmodel.OffloadAll, "0,2", "1-2", "0"}[rng.IntN(4)]
	}
	workload, err := estimate.Resolve(graph, costmodel.Workload{
		OffloadActivations: moved, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Schedule: kind, World: int64(devices), Mode: costmodel.Train,
		Batch: m, MicroBatches: m, Seq: 32, Precision: costmodel.BF16True,
	})
	if err != nil {
		return nil, err
	}
	table, err := estimate.Table(graph, workload)
	if err != nil {
		return nil, err
	}
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		return nil, err
	}
	topo := &costmodel.Topology{}
	for range devices {
		device := gpu.Device(workload.Mode)
		if offloads {
			device.PinnedBytesPerSecond = []float64{1e8, 1e9, 1e10, 1e11}[rng.IntN(4)]
		}
		device.CapacityBytes -= int64(rng.IntN(2)) * device.CapacityBytes / 3
		topo.Devices = append(topo.Devices, device)
	}
	objective := planner.Memory
	if rng.IntN(2) == 0 {
		objective = planner.Time
	}
	return &planner.Problem{Graph: graph, Costs: table, Topology: topo, Objective: objective}, nil
}
