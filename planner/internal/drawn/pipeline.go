package drawn

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Pipeline draws a chain of layers whose outputs differ by orders of
// magnitude, on devices that differ in memory and links, of which some may be
// missing. Some layers have no parameters.
func Pipeline(rng *rand.Rand) (planner.Problem, error) {
	n, devices := 3+rng.IntN(7), 2+rng.IntN(3)
	schedule, m := Pick(rng, costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved), 1+rng.Int64N(12)
	if schedule == costmodel.Interleaved && rng.IntN(4) > 0 {
		n, m = max(n, 2*devices), int64(devices)*(1+rng.Int64N(3))
	}
	layers := make([]modelgraph.Layer, n)
	wide := func(most int64) int64 { return int64(math.Exp(rng.Float64() * math.Log(float64(most)))) }
	hand := Pick[int64](rng, 1, 1e4, 1e8)
	for i := range layers {
		d := modelgraph.NotDeclared()
		d.ActivationBytes, d.WorkspaceBytes = wide(1e8), wide(1e8)
		d.OutputBytes = wide(hand)
		d.ForwardSeconds, d.BackwardSeconds = .01*rng.Float64(), .02*rng.Float64()
		layers[i] = modelgraph.Layer{Name: fmt.Sprintf("u%d", i), Declared: &d}
		if size := wide(1e8); rng.IntN(8) > 0 {
			layers[i].Params = []modelgraph.Tensor{{Name: "w", Shape: []int64{1 + size/2}, DType: modelgraph.BF16}}
		}
	}
	g, err := modelgraph.New("random", layers, nil)
	if err != nil {
		return planner.Problem{}, err
	}
	w := costmodel.Workload{
		Strategy: costmodel.Pipeline, World: int64(devices), Mode: Pick(rng, costmodel.Train, costmodel.Train, costmodel.Infer),
		Schedule: schedule, Batch: m, MicroBatches: m, Precision: costmodel.BF16True,
	}
	if w.Schedule == costmodel.Interleaved {
		w.VirtualStages = 2 + int64(rng.IntN(5)/4)
	}
	if w.Mode == costmodel.Train {
		w.Optimizer = Pick(rng, costmodel.AdamW, costmodel.AdamWForeach, costmodel.SGD)
		w.Recompute = Pick(rng, costmodel.RecomputeNone, costmodel.RecomputeNone, costmodel.RecomputeFull)
	}
	if w, err = estimate.Resolve(g, w); err != nil {
		return planner.Problem{}, err
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		return planner.Problem{}, err
	}
	table.Comm = costmodel.Comm{Peer: rng.Int64N(1 << 20)}
	p := planner.Problem{Graph: g, Costs: table, Topology: drawDevices(rng, table, devices), Objective: Pick(rng, planner.Memory, planner.Time)}
	for w.Schedule != costmodel.Interleaved && rng.IntN(5) == 0 {
		u := rng.IntN(n)
		p.Pins = append(p.Pins, planner.Pin{Pattern: fmt.Sprintf("u%d", u), Device: min(devices-1, u*devices/n+rng.IntN(2))})
	}
	if rng.IntN(8) == 0 {
		u := rng.IntN(n - 1)
		p.Together = [][]string{{fmt.Sprintf("u%d", u), fmt.Sprintf("u%d", u+1)}}
	}
	return p, nil
}

// drawDevices draws links, and capacities around the largest peak of a cut
// into stages of as many units.
func drawDevices(rng *rand.Rand, t *costmodel.Table, n int) *costmodel.Topology {
	topo := &costmodel.Topology{Devices: make([]costmodel.Device, n)}
	even := make(devicemap.Map, len(t.Units))
	for u := range even {
		even[u] = devicemap.Device(u * n / len(even))
	}
	var need int64
	for _, d := range devicemap.Predict(t, topo, even) {
		need = max(need, d.Predicted.PeakAllocatedBytes)
	}
	topo.Devices = nil
	draw := func() costmodel.Device {
		return costmodel.Device{
			CapacityBytes: 3<<20 + int64(float64(need)*(.3+1.3*rng.Float64())), ContextBytes: rng.Int64N(1 << 19), WorkspaceBytes: rng.Int64N(1 << 18),
			FLOPS: 1e12, Rates: costmodel.Rates{LinkBytesPerSecond: math.Exp2(25 + 10*rng.Float64()), BytesPerSecond: 1e12},
		}
	}
	same, equal := draw(), rng.IntN(3) == 0
	for range n {
		if !equal {
			same = draw()
		}
		topo.Devices = append(topo.Devices, same)
	}
	if rng.IntN(2) == 0 {
		missing := rng.IntN(3) == 0
		for a := range n {
			for b := range n {
				if a != b && (!missing || rng.IntN(4) != 0) {
					topo.Links = append(topo.Links, costmodel.Link{From: a, To: b, BytesPerSecond: math.Exp2(24 + 12*rng.Float64()), LatencySeconds: 1e-5 * rng.Float64()})
				}
			}
		}
	}
	return topo
}
