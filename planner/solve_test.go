package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/internal/randomproblem"
)

func loadOn(t *testing.T, g *modelgraph.Graph, capacities ...int64) planner.Problem {
	t.Helper()
	p := planner.Problem{Graph: g, Costs: randomproblem.Table(t, g, costmodel.Workload{Mode: costmodel.Load}), Topology: &costmodel.Topology{}}
	for _, c := range capacities {
		p.Topology.Devices = append(p.Topology.Devices, costmodel.Device{CapacityBytes: c})
	}
	return p
}

// TestChains solves inputs for which torchgpipe's balancer (blockpartition.solve) fails, from their
// files (fixtures/README.md).
func TestChains(t *testing.T) {
	for _, c := range []struct {
		file    string
		devices int
		want    int64
	}{{"near-equal-8", 2, 42}, {"near-equal-32", 4, 802}, {"range-not-max", 3, 8}} {
		g := fixtures.Must(load.Model("../fixtures/chains/"+c.file+".json", load.Options{}))(t)
		capacities := make([]int64, c.devices)
		for i := range capacities {
			capacities[i] = 10000
		}
		sol := fixtures.Must(planner.Solve(t.Context(), loadOn(t, g, capacities...), planner.Settings{}))(t)
		if got := sol.Devices[sol.Bottleneck].Predicted.PeakAllocatedBytes; got != c.want || sol.Status != planner.Optimal || sol.Gap() != 0 {
			t.Errorf("%s: bottleneck %d, want %d (%s)", c.file, got, c.want, sol.Status)
		}
	}
}

// TestEarlyStop: a stopped search reports that, and its bound is still valid.
func TestEarlyStop(t *testing.T) {
	sizes := make([]int64, 60)
	for i := range sizes {
		sizes[i] = int64(100 + 37*i%91 + 500*(i%7/6))
	}
	p := randomproblem.Chain(t, sizes, 9000, 4000, 7000, 2500, 8000)
	best, err := planner.Solve(t.Context(), p, planner.Settings{})
	if err != nil || best.Status != planner.Optimal {
		t.Fatal(err, best.Status)
	}
	sol := fixtures.Must(planner.Solve(t.Context(), p, planner.Settings{Probes: 1}))(t)
	if sol.Status != planner.LimitReached || sol.Probes != 1 || sol.LowerBound > best.Value || sol.Value < best.Value || sol.Gap() <= 0 {
		t.Errorf("%s after %d probes: %v to %v, the optimum is %v", sol.Status, sol.Probes, sol.LowerBound, sol.Value, best.Value)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sol, err = planner.Solve(ctx, p, planner.Settings{}); err != nil || sol.Status != planner.LimitReached || sol.LowerBound > best.Value {
		t.Errorf("cancelled: %v, %+v", err, sol)
	}
	for _, bound := range sol.Arguments(&p) {
		if bound.Value > sol.LowerBound {
			t.Errorf("cancelled: a bound of %v, and %s proves %v", sol.LowerBound, bound.Name, bound.Value)
		}
	}
}

// TestStoppedBound: a stopped search has the best bound that needs no search, which is larger than
// its own.
func TestStoppedBound(t *testing.T) {
	p := randomproblem.OnH200(t, "llama-3.2-1b", costmodel.Workload{Mode: costmodel.Train}, 2)
	sol, err := planner.Solve(t.Context(), p, planner.Settings{Probes: 1})
	if err != nil || sol.Status != planner.LimitReached || sol.Bound != "average" {
		t.Fatalf("%v, %+v", err, sol)
	}
	for _, bound := range sol.Arguments(&p) {
		if bound.Value > sol.LowerBound {
			t.Errorf("the bound is %v, and %s proves %v", sol.LowerBound, bound.Name, bound.Value)
		}
	}
}

// TestInfeasible: the error shows its arithmetic, and names the least number of devices that is
// enough.
func TestInfeasible(t *testing.T) {
	g := readModel(t, "llama-3.1-8b")
	gpu := fixtures.Must(catalogue.Find("a100-40gb"))(t)
	on := func(n int) planner.Problem {
		p := planner.Problem{Graph: g, Topology: &costmodel.Topology{}}
		p.Costs = randomproblem.Table(t, g, costmodel.Workload{Mode: costmodel.Train, Batch: 4, Seq: 2048, Optimizer: costmodel.AdamW})
		for range n {
			p.Topology.Devices = append(p.Topology.Devices, gpu.Device(costmodel.Train))
		}
		return p
	}
	sol, err := planner.Solve(t.Context(), on(2), planner.Settings{})
	var no *planner.InfeasibleError
	if !errors.As(err, &no) {
		t.Fatalf("%v is no refusal", err)
	}
	if !no.Proved || no.Best != sol || no.TooLarge != "" || no.Needed <= no.Budget || no.Budget != gpu.CapacityBytes-gpu.ReservedBytes || no.Worst != sol.Bottleneck {
		t.Errorf("%+v", no)
	}
	for _, want := range []string{"does not fit on 2 GPUs with one block of layers each", fmt.Sprintf("GPU %d needs", no.Worst), "short)", fmt.Sprintf("; %d such GPUs are enough", no.Devices)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if no.Devices <= 2 {
		t.Fatalf("%d devices are enough?", no.Devices)
	}
	if _, err := planner.Solve(t.Context(), on(no.Devices), planner.Settings{}); err != nil {
		t.Errorf("on %d devices: %v", no.Devices, err)
	}
	if _, err := planner.Solve(t.Context(), on(no.Devices-1), planner.Settings{}); !errors.As(err, &no) {
		t.Errorf("on %d devices: %v, so fewer are enough", no.Devices-1, err)
	}
}

// TestPools: if a map fits, Solve computes each device's pool once. If not, it computes none, with
// any method.
func TestPools(t *testing.T) {
	g := readModel(t, "llama-3.2-1b")
	for _, c := range []struct {
		strategy costmodel.Strategy
		capacity int64
		followed int
	}{{costmodel.DeviceMap, 16 << 30, 2}, {costmodel.DeviceMap, 4 << 30, 0}, {costmodel.FSDP, 40 << 30, 2}, {costmodel.FSDP, 4 << 30, 0}} {
		device := costmodel.Device{CapacityBytes: c.capacity}
		p := planner.Problem{Graph: g, Topology: &costmodel.Topology{Devices: []costmodel.Device{device, device}}}
		workload := costmodel.Workload{Mode: costmodel.Train, Strategy: c.strategy, Batch: 1, Seq: 512, Optimizer: costmodel.AdamW}
		if c.strategy == costmodel.FSDP {
			workload.World = 2
		}
		p.Costs = randomproblem.Table(t, g, workload)
		followed, marks := 0, p.Costs.Marks
		p.Costs.Marks = func(units []int, input bool) [][2]int64 {
			followed++
			return marks(units, input)
		}
		_, err := planner.Solve(t.Context(), p, planner.Settings{})
		var no *planner.InfeasibleError
		if followed != c.followed || errors.As(err, &no) != (c.followed == 0) {
			t.Errorf("%s on %d bytes: %d pools followed, not %d, and %v", c.strategy, c.capacity, followed, c.followed, err)
		}
	}
}

func TestTooLarge(t *testing.T) {
	_, err := planner.Solve(t.Context(), randomproblem.Chain(t, []int64{10, 500, 10}, 100, 200), planner.Settings{})
	var no *planner.InfeasibleError
	if !errors.As(err, &no) || no.TooLarge != "h.1" || no.Devices != 0 || !no.Proved || no.Needed != 510 || no.Budget != 200 {
		t.Fatalf("%v: %+v", err, no)
	}
	const want = `does not fit on 2 GPUs with one block of layers each: GPU 1 needs 510 B at its peak (weights), has 200 B (310 B short); "h.1" alone needs more than any GPU has: 500 B, and the largest budget is 200 B`
	if err.Error() != want {
		t.Errorf("error\n%s, want\n%s", err, want)
	}
}

// TestSolveRefuses: a caller's table may name a setting that no engine runs, and pins may name
// units or devices that do not exist. Each error is about the caller's input, not about devmap.
func TestSolveRefuses(t *testing.T) {
	for want, ask := range map[string]func(*planner.Problem){
		`strategy: "zero4" is unknown (known: device-map, pipeline,`:                                     func(p *planner.Problem) { p.Costs.Workload.Strategy = "zero4" },
		`strategy: "auto" is unknown`:                                                                    func(p *planner.Problem) { p.Costs.Workload.Strategy = costmodel.Auto },
		`mode: "dream" is unknown (known: infer, train, load, serve)`:                                    func(p *planner.Problem) { p.Costs.Workload.Mode = "dream" },
		`schedule: "dual" is unknown (known: 1f1b, gpipe, interleaved, zb-h1, zbv, v-half, v-min, auto)`: func(p *planner.Problem) { p.Costs.Workload.Schedule = "dual" },
		"strategy: pin and together place layers, and under ddp every GPU ru": func(p *planner.Problem) {
			p.Costs.Workload.Strategy, p.Together = costmodel.DDP, [][]string{{"h.0", "h.1"}}
		},
		`mode: unit "h.1": layer "b" takes memory other than its weights`: func(p *planner.Problem) {
			p.Costs.Workload.Mode, p.Costs.Units[1].Layers = costmodel.Load, []costmodel.LayerMemory{{Layer: "a", Weights: 1}, {Layer: "b", Forward: 1}}
		},
		`mode: unit "h.1": layer "a" keeps 3 B of a forward, and a pipeline's`: func(p *planner.Problem) {
			p.Costs.Workload.Mode, p.Costs.Workload.Strategy = costmodel.Infer, costmodel.Pipeline
			p.Costs.Units[1].Layers = []costmodel.LayerMemory{{Layer: "a", Saved: 3}}
		},
	} {
		problem := randomproblem.Chain(t, []int64{1, 2, 3}, 100, 100)
		ask(&problem)
		_, err := planner.Solve(t.Context(), problem, planner.Settings{})
		var field *costmodel.FieldError
		if !errors.As(err, &field) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
