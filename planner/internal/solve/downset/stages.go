package downset

import (
	"context"
	"math"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundprice"
	"github.com/devmap-dev/devmap/planner/internal/solve/boundwindow"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// stagePrices raises the bound by prices on the sets of stages.
type stagePrices struct {
	*boundprice.Stages
	*boundwindow.Cones
	// part of the way from the bound to the answer is where the next trial is,
	// work what it may take.
	part float64
	work int
	// limit is the load of the latest trial, refuted the highest that they refuted.
	limit, refuted float64
}

// The trials: half way at first, nearer to the bound where that was too far, and
// with more work when they would gain little.
const (
	firstPart, leastPart = 0.5, 0.06
	firstWork, moreWork  = 200_000_000, 3
	// mostPriced bounds the groups: the linear program has a row for each.
	mostPriced = 1400
)

// newStagePrices is nil where there are several kinds of devices, or the order
// of the groups has cycles, or they are too many, or windows are wide. Groups stay
// apart that the order has joined: who checks a proof knows nothing of that.
func (call *contiguous) newStagePrices(ctx context.Context) *stagePrices {
	in := graph.NewInstance(call.Problem, call.Problem.Groups())
	var edges [][2]int
	for _, edge := range call.Problem.Edges {
		if !call.Problem.Nodes[edge[0]].Backward && !call.Problem.Nodes[edge[1]].Backward {
			edges = append(edges, edge)
		}
	}
	for i, edge := range edges {
		edges[i] = [2]int{in.ItemOf[edge[0]], in.ItemOf[edge[1]]}
	}
	edges = carry(edges, in, in)
	if len(in.Nodes) > mostPriced || !graph.Orderable(len(in.Nodes), edges) {
		return nil
	}
	before, after := make([][]int, len(in.Nodes)), make([][]int, len(in.Nodes))
	for _, edge := range edges {
		after[edge[0]] = append(after[edge[0]], edge[1])
		before[edge[1]] = append(before[edge[1]], edge[0])
	}
	nets := netlist.New(in)
	cones, kind := boundwindow.NewCones(nets, before, after)
	if cones == nil || call.wide(cones) {
		return nil
	}
	stages := boundprice.NewStages(ctx, nets, kind)
	if stages == nil {
		return nil
	}
	return &stagePrices{Stages: stages, Cones: cones, part: firstPart, work: firstWork}
}

// wideWindows are so many stages wide that sets of one stage are hardly fewer than
// those of any device, and are asked for once a stage.
const wideWindows = 5

// wide says that windows are, half way from the bound to the answer.
func (call *contiguous) wide(cones *boundwindow.Cones) bool {
	first, last := cones.Windows((call.Answer.LowerBound + call.Answer.Value) / 2)
	stages := 0
	for item := range first {
		stages += last[item] - first[item] + 1
	}
	return stages > wideWindows*len(first)
}

// byStages raises the bound by prices on the sets of stages until about the moment
// given, or until all is proven; the next time it goes on. What they prove is checked
// apart from it.
func (call *contiguous) byStages(ctx context.Context, end time.Time) error {
	for time.Now().Before(end) && ctx.Err() == nil && !call.Proven() {
		call.heed()
		call.priced.trial(ctx, call, end)
	}
	return ctx.Err()
}

// trial asks about one load until the moment given, about the one that it had no time for
// before if there is something to be had of it still.
func (priced *stagePrices) trial(ctx context.Context, call *contiguous, end time.Time) {
	part, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	low, top := call.Answer.LowerBound, call.Answer.Value*(1-below)
	var proof *boundcheck.Proof
	if priced.Open() && low < priced.limit && priced.limit <= top {
		proof = priced.Resume(part)
	} else {
		priced.limit = low + priced.part*(top-low)
		const rounding = 1e-8 // wider by so much than what the proof has to do with
		first, last := priced.Windows(priced.limit * (1 + rounding))
		proof = priced.Refute(part, priced.limit, first, last, priced.work)
	}
	if proof != nil && boundcheck.CheckStages(ctx, call.Problem, proof) == nil {
		call.Raise(priced.limit, "sets of stages: at some prices, all items are worth more than what the stages can take within this load, of what may be there")
		priced.part, priced.refuted = math.Min(1, 2*priced.part), priced.limit
		return
	}
	if priced.Open() {
		return
	}
	if priced.part /= 2; priced.part < leastPart {
		priced.part, priced.work = firstPart, moreWork*priced.work
	}
}
