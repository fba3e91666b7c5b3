package planner_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// pipelines and pipelineSeed make the draw of TestRandomPipelines longer:
//
//	go test ./planner -run RandomPipelines -pipelines 5000 -v
var (
	pipelines    = flag.Int("pipelines", 250, "random pipelines that TestRandomPipelines draws")
	pipelineSeed = flag.Uint64("pipeline-seed", 1, "where TestRandomPipelines begins to draw")
)

// randomPipeline draws a chain of layers whose outputs differ by orders of
// magnitude, on devices that differ in memory and links, of which some may be
// missing. Some layers have no parameters.
func randomPipeline(rng *rand.Rand) (planner.Problem, error) {
	n, devices := 3+rng.IntN(7), 2+rng.IntN(3)
	schedule, m := pick(rng, costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved), 1+rng.Int64N(12)
	if schedule == costmodel.Interleaved && rng.IntN(4) > 0 {
		n, m = max(n, 2*devices), int64(devices)*(1+rng.Int64N(3))
	}
	layers := make([]modelgraph.Layer, n)
	wide := func(most int64) int64 { return int64(math.Exp(rng.Float64() * math.Log(float64(most)))) }
	hand := pick[int64](rng, 1, 1e4, 1e8)
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
		Strategy: costmodel.Pipeline, World: int64(devices), Mode: pick(rng, costmodel.Train, costmodel.Train, costmodel.Infer),
		Schedule: schedule, Batch: m, MicroBatches: m, Precision: costmodel.BF16True,
	}
	if w.Schedule == costmodel.Interleaved {
		w.VirtualStages = 2 + int64(rng.IntN(5)/4)
	}
	if w.Mode == costmodel.Train {
		w.Optimizer = pick(rng, costmodel.AdamW, costmodel.AdamWForeach, costmodel.SGD)
		w.Recompute = pick(rng, costmodel.RecomputeNone, costmodel.RecomputeNone, costmodel.RecomputeFull)
	}
	if w, err = estimate.Resolve(g, w); err != nil {
		return planner.Problem{}, err
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		return planner.Problem{}, err
	}
	table.Comm = costmodel.Comm{Peer: rng.Int64N(1 << 20)}
	p := planner.Problem{Graph: g, Costs: table, Topology: drawDevices(rng, table, devices), Objective: pick(rng, planner.Memory, planner.Time)}
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
				if a != b && !(missing && rng.IntN(4) == 0) {
					topo.Links = append(topo.Links, costmodel.Link{From: a, To: b, BytesPerSecond: math.Exp2(24 + 12*rng.Float64()), LatencySeconds: 1e-5 * rng.Float64()})
				}
			}
		}
	}
	return topo
}

// judged is what is known of a problem from every map there is.
type judged struct {
	maps, fit int     // allowed, and of them within all budgets
	linked    bool    // a map that fits has all the links that it needs
	share     float64 // the least largest share, fit or not
	squares   float64 // of those maps the least sum of squared shares
	seconds   float64 // the shortest step of the maps that fit
	even      float64 // of those maps the least largest share
}

// judgePipeline looks at every way to cut, under [planner.Time] on every order
// of the devices, by the check and the plain form of the step, which share
// nothing with the solver but the cost table.
func judgePipeline(p *planner.Problem) judged {
	w := &p.Costs.Workload
	n, chunks := len(p.Topology.Devices), 1
	if w.Schedule == costmodel.Interleaved {
		chunks = int(w.VirtualStages)
	}
	out := judged{share: math.Inf(1), squares: math.Inf(1), seconds: math.Inf(1), even: math.Inf(1)}
	own := make([]int, n)
	for d := range own {
		own[d] = d
	}
	orders := [][]int{own}
	if p.Objective == planner.Time {
		orders = permutations(n)
	}
	for _, order := range orders {
		ordered := slices.Equal(order, own)
		cutAll(len(p.Graph.Units), n*chunks, nil, func(cuts []int) {
			m := make(devicemap.Map, len(p.Graph.Units))
			for c := range len(cuts) - 1 {
				for u := cuts[c]; u < cuts[c+1]; u++ {
					m[u] = devicemap.Device(order[c%n])
				}
			}
			if keeps(p, m) {
				out.take(p, m, ordered)
			}
		})
	}
	return out
}

// keeps reports that a map keeps the pins and together-groups, which name
// units.
func keeps(p *planner.Problem, m devicemap.Map) bool {
	at := func(name string) devicemap.Device {
		return m[slices.IndexFunc(p.Graph.Units, func(u modelgraph.Unit) bool { return u.Name == name })]
	}
	for _, pin := range p.Pins {
		if int(at(pin.Pattern)) != pin.Device {
			return false
		}
	}
	for _, set := range p.Together {
		if at(set[0]) != at(set[1]) {
			return false
		}
	}
	return true
}

func (j *judged) take(p *planner.Problem, m devicemap.Map, ordered bool) {
	r := devicemap.CheckMap(p.Graph, p.Costs, p.Topology, m)
	for _, f := range r.Faults {
		if f.Kind != devicemap.DoesNotFit {
			return
		}
	}
	most, squares := 0., 0.
	for d := range r.Devices {
		s := r.Devices[d].Share()
		most, squares = max(most, s), squares+s*s
	}
	linked := true
	for u := 1; u < len(m); u++ {
		linked = linked && p.Topology.Linked(int(m[u-1]), int(m[u]))
	}
	if ordered {
		j.maps++
		switch {
		case most < j.share*(1-1e-12):
			j.share, j.squares = most, squares
		case most <= j.share*(1+1e-12):
			j.squares = min(j.squares, squares)
		}
	}
	if len(r.Faults) > 0 || p.Objective == planner.Time && !linked {
		return
	}
	j.fit++
	j.linked = j.linked || linked
	if p.Objective == planner.Time {
		switch seconds := *devicemap.StepSeconds(p.Costs, p.Topology, m); {
		case seconds < j.seconds*(1-1e-12):
			j.seconds, j.even = seconds, most
		case seconds <= j.seconds*(1+1e-12):
			j.even = min(j.even, most)
		}
	}
}

// tally counts what came of the draw.
type tally struct {
	drawn, refused, infeasible, unlinked, solved, optimal, even int
	crashes, errors, wrong, bounds, notFit                      int
	loops, climbed                                              int
}

func (c *tally) String() string {
	return fmt.Sprintf("%d random pipelines: %d crashes, %d errors, %d wrong values, %d bounds above brute force, %d false \"does not fit\"; %d solved, of them %d proved optimal (%.1f %%) and %d even; %d do not fit, %d lack a link, %d refused; without trying all cuts the best was found in %d of %d interleaved",
		c.drawn, c.crashes, c.errors, c.wrong, c.bounds, c.notFit, c.solved, c.optimal, 100*float64(c.optimal)/float64(max(1, c.solved)), c.even, c.infeasible, c.unlinked, c.refused, c.climbed, c.loops)
}

// TestRandomPipelines holds the solvers of pipelines to every map there is.
func TestRandomPipelines(t *testing.T) {
	t.Parallel()
	var c tally
	for i := range *pipelines {
		seed := *pipelineSeed + uint64(i)
		p, err := randomPipeline(rand.New(rand.NewPCG(seed, 77)))
		if err != nil {
			t.Fatal(seed, err)
		}
		c.drawn++
		if fault := c.hold(t.Context(), &p); fault != "" && c.faults() < 20 {
			t.Errorf("-pipelines 1 -pipeline-seed %d: %s, %d devices, %d units, %+v: %s", seed, p.Objective, len(p.Topology.Devices), len(p.Graph.Units), p.Costs.Workload, fault)
		}
	}
	t.Log(c.String())
	if c.faults() > 0 {
		t.Errorf("%d faults", c.faults())
	}
	if 4*c.optimal < 3*c.solved || *pipelines >= 250 && (c.solved < *pipelines/4 || c.infeasible < *pipelines/20) {
		t.Errorf("%d of %d solved are proved, %d do not fit: too few, or the draw is one-sided", c.optimal, c.solved, c.infeasible)
	}
}

func (c *tally) faults() int { return c.crashes + c.errors + c.wrong + c.bounds + c.notFit }

// hold solves a problem and says what is wrong with the answer; empty:
// nothing is.
func (c *tally) hold(ctx context.Context, p *planner.Problem) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			c.crashes++
			fault = fmt.Sprint("panic: ", r)
		}
	}()
	sol, err := planner.Solve(ctx, *p, planner.Settings{TimeLimit: time.Minute})
	want := judgePipeline(p)
	var inf *planner.InfeasibleError
	var stage *planner.StageError
	var pattern *planner.PatternError
	var conflict *planner.ConflictError
	var link *planner.LinkError
	switch {
	case errors.As(err, &stage), errors.As(err, &pattern), errors.As(err, &conflict):
		c.refused++
		if want.maps > 0 && taken(p) {
			c.errors++
			return fmt.Sprintf("refused: %v, but %d maps are allowed", err, want.maps)
		}
		return ""
	case errors.As(err, &link):
		c.unlinked++
		if want.linked {
			c.errors++
			return fmt.Sprintf("%v, but a map has its links", err)
		}
		return ""
	case errors.As(err, &inf):
		c.infeasible++
		if want.fit > 0 {
			c.notFit++
			return fmt.Sprintf("%v, but %d maps fit (%v)", err, want.fit, want.share)
		}
		if p.Objective == planner.Memory && inf.Best.LowerBound > want.share*(1+1e-9) {
			c.bounds++
			return fmt.Sprintf("bound %v, but the best share is %v", inf.Best.LowerBound, want.share)
		}
		return ""
	case err != nil:
		c.errors++
		return err.Error()
	}
	c.solved++
	if fault := c.looped(ctx, p, &want); fault != "" {
		return fault
	}
	return c.compare(p, sol, &want)
}

// looped holds the bounds of an interleaved pipeline, and what is found where
// not all cuts are tried, to the best of all.
func (c *tally) looped(ctx context.Context, p *planner.Problem, want *judged) string {
	if p.Costs.Workload.Schedule != costmodel.Interleaved {
		return ""
	}
	weights, run, found, err := p.LoopedBounds(ctx)
	switch {
	case err != nil:
		c.errors++
		return err.Error()
	case max(weights, run) > want.share*(1+1e-12):
		c.bounds++
		return fmt.Sprintf("bounds %v (weights) and %v (largest run), but the best of all maps is %v", weights, run, want.share)
	case found < want.share*(1-1e-12):
		c.wrong++
		return fmt.Sprintf("found %v, below the best of all maps, %v", found, want.share)
	}
	c.loops++
	if found <= want.share*(1+1e-9) {
		c.climbed++
	}
	return ""
}

// taken reports that the engine takes so many micro-batches.
func taken(p *planner.Problem) bool {
	w := &p.Costs.Workload
	s := costmodel.Schedule{Kind: w.Schedule, Stages: int64(len(p.Topology.Devices)), Chunks: max(1, w.VirtualStages), MicroBatches: w.MicroBatches}
	return s.Check() == nil || w.Mode == costmodel.Infer && w.Schedule != costmodel.Interleaved
}

// compare holds an answer to the best of all maps.
func (c *tally) compare(p *planner.Problem, sol *planner.Solution, want *judged) string {
	best, second, even := want.share, want.squares, 0.
	for d := range sol.Devices {
		even += sol.Devices[d].Share() * sol.Devices[d].Share()
	}
	if p.Objective == planner.Time {
		best, second, even = want.seconds, want.even, sol.LargestShare()
	}
	switch {
	case sol.LowerBound > best*(1+2e-9):
		c.bounds++
		return fmt.Sprintf("bound %v (%s), but the best of all maps is %v", sol.LowerBound, sol.Bound, best)
	case sol.Value < best*(1-2e-9):
		c.wrong++
		return fmt.Sprintf("value %v is below the best of all maps, %v", sol.Value, best)
	case sol.Status != planner.Optimal:
		return ""
	case sol.Value > best*(1+2e-9):
		c.wrong++
		return fmt.Sprintf("value %v is \"optimal\", the best of all maps %v", sol.Value, best)
	}
	c.optimal++
	if sol.Even {
		c.even++
		if even > second*(1+1e-8) {
			c.wrong++
			return fmt.Sprintf("\"even\" at %v, the most even of all maps with this value %v", even, second)
		}
	}
	return ""
}
