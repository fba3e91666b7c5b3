package planner_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// TestHostBlocks: the blocks that leave for host memory shorten a step that memory limits, and never
// lengthen one. No list of blocks has a step below the bound.
func TestHostBlocks(t *testing.T) {
	t.Parallel()
	shorter, moved, alone := 0, 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 46))
		kind := []costmodel.ScheduleKind{costmodel.GPipe, costmodel.OneFOneB, costmodel.ZBH1}[rng.IntN(3)]
		p, err := splitProblem(rng, kind, true)
		if err != nil {
			t.Fatal(seed, err)
		}
		p.Objective, p.Workload, p.Costs = planner.Time, p.Costs.Workload, nil
		work := &p.Workload // long sequences: activations are most of the memory
		work.OffloadActivations, work.Recompute, work.Seq, work.MicroBatches = "", "auto", 512, 4+rng.Int64N(5)
		work.Batch = 4 * work.MicroBatches
		for i := range p.Topology.Devices {
			p.Topology.Devices[i].PinnedBytesPerSecond = []float64{1e11, 1e12, 1e13}[rng.IntN(3)]
		}
		open := fixtures.Must(planner.Solve(t.Context(), *p, planner.Settings{}))(t)
		squeezed := 0.5 + 0.5*rng.Float64()
		for i := range p.Topology.Devices {
			device, peak := &p.Topology.Devices[i], open.Devices[open.Bottleneck].Predicted
			device.ReservedBytes = device.CapacityBytes - peak.OverheadBytes - int64(squeezed*float64(peak.PeakAllocatedBytes))
		}
		solve := func(blocks string) *planner.Solution {
			q := *p
			q.Workload.OffloadActivations = blocks
			out, err := planner.Solve(t.Context(), q, planner.Settings{})
			if large := (*planner.InfeasibleError)(nil); errors.As(err, &large) {
				return nil
			}
			return fixtures.Must(out, err)(t)
		}
		auto, none, full := solve("auto"), solve(""), solve("full")
		if auto == nil {
			if none != nil || full != nil {
				t.Errorf("seed %d: no block or all of them fit, and no choice does", seed)
			}
			continue
		}
		for _, other := range []*planner.Solution{none, full} {
			if other != nil && auto.Value > other.Value {
				t.Errorf("seed %d: %v s, and %v s with blocks %q", seed, auto.Value, other.Value, other.Costs.Workload.OffloadActivations)
			}
		}
		if none != nil && auto.Value < none.Value {
			shorter++
		}
		for _, blocks := range []string{"full", "0", "1", "0-1", "0,2", "1-2", "0-2"} {
			if other := solve(blocks); other != nil && other.Value < auto.LowerBound {
				t.Errorf("seed %d: blocks %s take %v s, below the bound of %v s", seed, blocks, other.Value, auto.LowerBound)
			}
		}
		if auto.Costs.Workload.OffloadActivations != "" {
			moved++
		}
		if none == nil && full != nil {
			alone++
		}
	}
	if shorter == 0 || moved < 5 || alone == 0 {
		t.Errorf("%d of 40 steps are shorter, %d plans move blocks, and %d fit only so", shorter, moved, alone)
	}
}

// TestHostOfFront: no point of a front takes more of the host's memory than there is. It has what the
// most modest point of a front without this limit takes.
func TestHostOfFront(t *testing.T) {
	t.Parallel()
	points, refused := 0, 0
	for seed := range uint64(30) {
		p := fixtures.Must(splitProblem(rand.New(rand.NewPCG(seed, 47)), costmodel.OneFOneB, true))(t)
		p.Objective, p.Workload, p.Costs = planner.Time, p.Costs.Workload, nil
		p.Workload.OffloadActivations, p.Workload.Recompute = "full", []string{"none", "auto"}[seed%2]
		for _, point := range fixtures.Must(planner.SolveFront(t.Context(), *p, planner.Settings{}))(t).Points {
			if bytes, _ := devicemap.HostMemory(point.Devices, p.Topology); p.Topology.HostMemoryBytes == 0 || bytes < p.Topology.HostMemoryBytes {
				p.Topology.HostMemoryBytes = bytes
			}
		}
		front, err := planner.SolveFront(t.Context(), *p, planner.Settings{})
		if large := (*planner.InfeasibleError)(nil); errors.As(err, &large) && strings.Contains(err.Error(), "of the host's memory") {
			refused++
			continue
		}
		for _, point := range fixtures.Must(front, err)(t).Points {
			points++
			if bytes, lacks := devicemap.HostMemory(point.Devices, p.Topology); lacks > 0 {
				t.Errorf("seed %d: a point takes %d bytes of the host's memory, and lacks %d", seed, bytes, lacks)
			}
		}
	}
	p := fixtures.Must(splitProblem(rand.New(rand.NewPCG(1, 47)), costmodel.OneFOneB, true))(t)
	p.Workload, p.Costs, p.Topology.HostMemoryBytes = p.Costs.Workload, nil, 1
	p.Workload.OffloadActivations, p.Workload.Recompute = "full", "auto"
	if front, err := planner.SolveFront(t.Context(), *p, planner.Settings{}); err == nil || !strings.Contains(err.Error(), "of the host's memory") {
		t.Errorf("with a byte of host memory: %v, %v", front, err)
	}
	if points == 0 || refused == 0 {
		t.Errorf("%d points, and %d refusals", points, refused)
	}
}

// A cap below the memory of 1F1B costs neither recomputation nor a step as long as with it.
func TestHostInsteadOfRecomputation(t *testing.T) {
	kind, budget, recompute, ctx := "h100-80gb", int64(28<<30), "auto", t.Context()
	ended, end := context.WithCancel(ctx)
	end()
	solution := func(host string, bytes int64) (*planner.Solution, error) {
		found := fixtures.Must(catalogue.Find(kind))(t)
		gpu := found.Device(costmodel.Train)
		gpu.CapacityBytes = budget
		return planner.Solve(ctx, planner.Problem{
			Graph:     fixtures.Must(hf.FromConfig("llama-3.1-8b", fixtures.Must(os.ReadFile("../fixtures/models/llama-3.1-8b/config.json"))(t)))(t),
			Objective: planner.Time, Topology: &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu}, 4), HostMemoryBytes: bytes},
			Workload: costmodel.Workload{Mode: costmodel.Train, Runtime: costmodel.Devmap, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Precision: costmodel.BF16True, Recompute: recompute, OffloadActivations: host, Batch: 16, MicroBatches: 8, Seq: 2048, World: 4},
		}, planner.Settings{})
	}
	without, with := fixtures.Must(solution("", 0))(t), fixtures.Must(solution("auto", 0))(t)
	if work := &with.Costs.Workload; without.Costs.Workload.Recompute == "none" || work.Recompute != "none" || with.Value >= without.Value {
		t.Errorf("%v s with recompute %s, and %v s with recompute %s", with.Value, work.Recompute, without.Value, without.Costs.Workload.Recompute)
	}
	// A search that is stopped answers with the first list of blocks that fits.
	ctx = ended
	if first := fixtures.Must(solution("auto", 0))(t); first.Status != planner.LimitReached || first.Costs.Workload.OffloadActivations != "" {
		t.Errorf("stopped: %s, blocks %q", first.Status, first.Costs.Workload.OffloadActivations)
	}
	budget, recompute = 27<<30, "none"
	if first := fixtures.Must(solution("auto", 0))(t); first.Status != planner.LimitReached || first.Costs.Workload.OffloadActivations != "full" {
		t.Errorf("stopped: %s, blocks %q, without as many as fit on the GPUs", first.Status, first.Costs.Workload.OffloadActivations)
	}
	budget, recompute, ctx = 28<<30, "auto", t.Context()
	if with.LowerBound >= without.LowerBound {
		t.Errorf("a bound of %v s counts host memory, and one of %v s does not", with.LowerBound, without.LowerBound)
	}
	if little := fixtures.Must(solution("auto", 1<<30))(t); little.Costs.Workload.OffloadActivations != "" || little.Value != without.Value {
		t.Errorf("with 1 GiB of host memory, blocks %q take %v s", little.Costs.Workload.OffloadActivations, little.Value)
	}
	if _, err := solution("full", 1<<30); !errors.As(err, new(*planner.InfeasibleError)) || !strings.Contains(err.Error(), "bytes of the host's memory, and the topology gives 1073741824: ") {
		t.Errorf("all blocks with 1 GiB of host memory: %v", err)
	}
	for _, has := range []string{"none", "full"} {
		recompute = has
		if _, err := solution("full", 1<<20); err == nil || strings.Contains(err.Error(), ", or recomputation: recompute=full") != (has == "none") {
			t.Errorf("with recompute %s and 1 MiB of host memory: %v", has, err)
		}
	}
	budget, recompute = 23<<30, "none"
	if fits, err := solution("auto", 0); err != nil || fits.LargestShare > 1 {
		t.Errorf("with any host memory: %v", err)
	}
	if _, err := solution("auto", 1<<30); err == nil || !strings.Contains(err.Error(), "(234.1 MiB short); ") || !strings.Contains(err.Error(), "of the host's memory") {
		t.Errorf("with too little of both memories: %v", err)
	}
	budget = 12 << 30 // too little for any list: the refusal is about the one nearest to fitting
	var least, none *planner.InfeasibleError
	_, err := solution("auto", 0)
	if _, without := solution("", 0); !errors.As(err, &least) || !errors.As(without, &none) || least.Needed >= none.Needed {
		t.Errorf("with 12 GiB: %v, and without moved blocks: %v", err, without)
	}
	kind = "rtx-4090"
	if _, err := solution("full", 0); err == nil || !strings.Contains(err.Error(), `GPU 0 ("rtx-4090") copies to the host at an unknown rate: devmap probe measures it, or --topology FILE gives pinned_bytes_per_second`) {
		t.Errorf("without the rate of a link: %v", err)
	}
}
