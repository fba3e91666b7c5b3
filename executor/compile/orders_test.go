package compile

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/executor/program"
)

// randomOrders draws an order of all actions in which each comes behind what it
// needs, and deals it out to the ranks: stages may take micro-batches in other
// orders than those before them.
func randomOrders(rng *rand.Rand, compiler *compiler) [][]order.Action {
	out := make([][]order.Action, len(compiler.ranks))
	ranks := compiler.rankOfStages()
	type step struct {
		stage, microBatch int
		backward          bool
	}
	done := make(map[step]bool)
	last := len(compiler.stages) - 1
	ready := func(next step) bool {
		switch before := (step{next.stage - 1, next.microBatch, false}); {
		case done[next]:
			return false
		case !next.backward:
			return next.stage == 0 || done[before]
		default:
			return done[step{next.stage, next.microBatch, false}] && (next.stage == last || done[step{next.stage + 1, next.microBatch, true}])
		}
	}
	all := len(compiler.stages) * compiler.microBatches
	if compiler.trains() {
		all *= 2
	}
	for len(done) < all {
		next := step{rng.IntN(len(compiler.stages)), rng.IntN(compiler.microBatches), compiler.trains() && rng.IntN(2) == 0}
		if !ready(next) {
			continue
		}
		done[next] = true
		rank := ranks[next.stage]
		kind := order.Forward
		if next.backward {
			kind = order.Backward
		}
		out[rank] = append(out[rank], order.Action{Kind: kind, Chunk: int64(compiler.stages[next.stage].chunk), MicroBatch: int64(next.microBatch)})
	}
	return out
}

func (plan *randomPlan) ordered(orders [][]order.Action) (*program.Program, error) {
	return slotted(true, &plan.table.Workload, func(slots int) (*program.Program, error) {
		compiler, err := newCompiler(plan.graph, plan.table, plan.topology, plan.placement)
		if err != nil {
			return nil, err
		}
		compiler.perChannel = slots
		return compiler.program(orders)
	})
}

// TestOrders: whatever the order in which the stages take their micro-batches,
// there is a valid program, with more slots where messages are taken in another
// order or later than they come.
func TestOrders(t *testing.T) {
	more := 0
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 4))
		plan := newRandomPlan(rng)
		if plan.table.Workload.Strategy != costmodel.Pipeline || plan.table.Workload.Mode == costmodel.Load {
			continue
		}
		compiler, err := newCompiler(plan.graph, plan.table, plan.topology, plan.placement)
		if err != nil {
			t.Fatal(err)
		}
		out, err := plan.ordered(randomOrders(rng, compiler))
		if err != nil {
			t.Fatalf("seed %d, %+v on %v: %v", seed, plan.table.Workload, plan.placement, err)
		}
		for index := range out.Channels {
			if out.Channels[index].Slots > 2 {
				more++
				break
			}
		}
	}
	if more < 100 {
		t.Errorf("%d programs have more than two slots: the draw is one-sided", more)
	}
}

// TestBrokenOrders: what an order lacks is named, and stages that wait for each
// other are its own fault.
func TestBrokenOrders(t *testing.T) {
	plan := newRandomPlan(rand.New(rand.NewPCG(12, 4)))
	work := &plan.table.Workload
	work.Mode, work.Strategy, work.Schedule, work.MicroBatches, work.Batch, work.NewTokens = costmodel.Infer, costmodel.Pipeline, costmodel.GPipe, 2, 2, 0
	plan.topology.Devices = append(plan.topology.Devices, plan.topology.Devices[0])
	for unit := range plan.placement {
		plan.placement[unit] = 0
	}
	plan.placement[len(plan.placement)-1] = 1
	forward := func(microBatch int64) order.Action { return order.Action{MicroBatch: microBatch} }
	whole := []order.Action{forward(0), forward(1)}
	for name, test := range map[string]struct {
		orders [][]order.Action
		want   string
	}{
		"one rank":   {[][]order.Action{whole}, "it is of 1 ranks"},
		"twice":      {[][]order.Action{whole, {forward(0), forward(0)}}, "rank 1: the forward of micro-batch 0 of chunk 0 comes twice"},
		"missing":    {[][]order.Action{whole[:1], whole}, "rank 0: chunk 0 runs 1 forwards and 0 backwards of 2"},
		"unknown":    {[][]order.Action{whole, {forward(0), forward(2)}}, "micro-batch 2 of chunk 0 is none of 2"},
		"a backward": {[][]order.Action{whole, {forward(0), {Kind: order.Backward}, forward(1)}}, "the backward of micro-batch 0"},
		"no chunk":   {[][]order.Action{whole, {forward(0), {Chunk: 1}}}, "chunk 1"},
	} {
		if _, err := plan.ordered(test.orders); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestBrokenHalves: an order with halves of backwards needs a plan that splits them, and both halves
// of every micro-batch.
func TestBrokenHalves(t *testing.T) {
	plan := newRandomPlan(rand.New(rand.NewPCG(12, 4)))
	work := &plan.table.Workload
	work.Mode, work.Strategy, work.MicroBatches, work.Batch, work.NewTokens = costmodel.Train, costmodel.Pipeline, 1, 1, 0
	for unit := range plan.placement {
		plan.placement[unit] = 0
	}
	forward, input, weight := order.Action{}, order.Action{Kind: order.Input}, order.Action{Kind: order.Weight}
	for name, test := range map[string]struct {
		schedule costmodel.ScheduleKind
		row      []order.Action
		want     string
	}{
		"a plan of whole ones":   {costmodel.OneFOneB, []order.Action{forward, input, weight}, "micro-batch 0 of chunk 0 has a backward in two halves, and the plan has whole ones"},
		"no gradient of weights": {costmodel.ZBH1, []order.Action{forward, input}, "chunk 0 makes the gradients of weights of 0 micro-batches of 1"},
		"weights before input":   {costmodel.ZBH1, []order.Action{forward, weight, input}, "the weights' half of the backward of micro-batch 0"},
	} {
		work.Schedule = test.schedule
		if _, err := plan.ordered([][]order.Action{test.row}); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestOutstanding: a channel has room for the messages that wait for one behind
// them, and no more.
func TestOutstanding(t *testing.T) {
	compiler := &compiler{perChannel: 2}
	for _, test := range []struct {
		sent, used []int32
		want       int
	}{
		{[]int32{0, 1, 2, 3}, []int32{0, 1, 2, 3}, 2},
		{[]int32{0}, []int32{0}, 1},
		{[]int32{0, 1, 2, 3}, []int32{3, 2, 1, 0}, 4},
		{[]int32{0, 1, 2, 3}, []int32{2, 0, 1, 3}, 3},
		{[]int32{1, 0, 3, 2}, []int32{0, 1, 2, 3}, 2},
	} {
		if got := compiler.outstanding(test.sent, test.used); got != test.want {
			t.Errorf("sent %v, used %v: %d slots, want %d", test.sent, test.used, got, test.want)
		}
	}
}
