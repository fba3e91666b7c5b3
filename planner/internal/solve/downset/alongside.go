package downset

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
	"github.com/devmap-dev/devmap/planner/internal/solve/stagesearch"
)

// ByMoves is the method of what the local search finds.
const ByMoves = "local search: items moved between neighbouring parts, by simulated annealing"

// mover is a local search over the order's items, none of which are joined for
// speed.
type mover struct {
	*order
	search *stagesearch.Search
}

// fine is the order in which no leaf was joined for speed.
func (call *contiguous) fine() *order {
	if call.apart == nil {
		if call.apart = call.order; call.loose != nil {
			if fine, err := newOrder(call.Problem, false); err == nil {
				call.apart = fine
			}
		}
	}
	return call.apart
}

// newMover starts from the best answer, or from a linear extension in parts of
// as many items each. It is nil where the tables would be too large.
func (call *contiguous) newMover(ctx context.Context, stream uint64) *mover {
	fine := call.fine()
	chain := stagesearch.NewChain(netlist.New(fine.Instance), fine.before, fine.after)
	if chain == nil {
		return nil
	}
	move := &mover{order: fine, search: stagesearch.New(chain, call.Settings.Seed, stream)}
	place := make([]int, len(fine.Nodes))
	if call.Answer.Place != nil {
		for item := range place {
			place[item] = call.Answer.Place[fine.Nodes[item][0]]
		}
	} else {
		for items := range fine.extensions(ctx) {
			chain.Spread(items, place)
			break
		}
	}
	move.search.Start(place)
	return move
}

// learn takes a better answer than its best for the rounds to come.
func (move *mover) learn(place []int, value float64) {
	if _, largest := move.search.Best(); place == nil || !(value < largest*(1-graph.Rounding)) {
		return
	}
	items := make([]int, len(move.Nodes))
	for item := range items {
		items[item] = place[move.Nodes[item][0]]
	}
	move.search.Learn(items)
}

// round makes one round and returns the best placement of the nodes, nil where
// there is none.
func (move *mover) round(ctx context.Context) (place []int, largest float64) {
	move.search.Round(ctx)
	items, largest := move.search.Best()
	if items == nil {
		return nil, largest
	}
	place = make([]int, len(move.ItemOf))
	for node, item := range move.ItemOf {
		place[node] = items[item]
	}
	return place, largest
}

// helper is a local search that runs beside the one goroutine that solves, and
// leaves there what it finds.
type helper struct {
	sync.WaitGroup
	sync.Mutex
	cancel context.CancelFunc
	place  []int
	value  float64
	// known is the best answer of the goroutine that solves, and what it comes to.
	known      []int
	knownValue float64
}

// listedPause is what the search of a lattice that was listed is given before
// the helper begins; most end within it.
const listedPause = time.Second

// untimedRounds are made where there is no end to wait for: the answer is then
// the same in every run.
const untimedRounds = 4

// help starts a helper, once, after a pause. Without a deadline, and without a
// pause, the rounds are made here instead.
func (call *contiguous) help(ctx context.Context, pause time.Duration) {
	_, timed := ctx.Deadline()
	if call.beside != nil || !timed && pause > 0 {
		return
	}
	beside := &helper{value: math.Inf(1), knownValue: math.Inf(1)}
	call.beside = beside
	ctx, beside.cancel = context.WithCancel(ctx)
	move := call.newMover(ctx, 1)
	if move == nil {
		return
	}
	if !timed {
		for range untimedRounds {
			beside.leave(move.round(ctx))
			call.heed()
		}
		return
	}
	beside.Go(func() {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		for ctx.Err() == nil {
			move.learn(beside.told())
			beside.leave(move.round(ctx))
		}
	})
}

// told is the best answer of the goroutine that solves.
func (beside *helper) told() (place []int, value float64) {
	beside.Lock()
	defer beside.Unlock()
	return beside.known, beside.knownValue
}

func (beside *helper) leave(place []int, value float64) {
	beside.Lock()
	defer beside.Unlock()
	if place != nil && value < beside.value {
		beside.place, beside.value = place, value
	}
}

// heed takes what the helper has found, if it is better, and tells it what it has not.
func (call *contiguous) heed() {
	if call.beside == nil {
		return
	}
	call.beside.Lock()
	defer call.beside.Unlock()
	if call.beside.place != nil && call.beside.value < call.Answer.Value*(1-graph.Rounding) {
		call.Take(call.beside.place, ByMoves)
	}
	call.beside.known, call.beside.knownValue = call.Answer.Place, call.Answer.Value
}

// dismiss ends the helper.
func (call *contiguous) dismiss() {
	if call.beside != nil {
		call.beside.cancel()
		call.beside.Wait()
		call.heed()
	}
}
