// Package scheduletime finds the order of a pipeline's passes together with its cuts and the blocks
// that it recomputes. It looks for the shortest step that fits. It tries the published orders
// first, with the embedding and the head on the two ends of the GPUs or both on the first. Orders
// of its own follow (package orders).
package scheduletime

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/instance"
	"github.com/devmap-dev/devmap/planner/internal/solve/orders"
)

// Question is what a search chooses from.
type Question struct {
	// Items are the model's units that can be stages.
	Items    *instance.Items
	Topology *costmodel.Topology
	// Kinds are the orders to try. Own: orders of the search's own may replace them.
	Kinds []costmodel.ScheduleKind
	Own   bool
	// Short is the question with fewer micro-batches, for orders of the search's own; nil: the same.
	Short *Question
	// Blocks are the units that can be recomputed, ascending; empty if the workload says which are.
	Blocks []int
	// Table returns the costs of a schedule with these blocks recomputed.
	Table func(kind costmodel.ScheduleKind, again []bool) (*costmodel.Table, error)
	// Start returns the best map of another method for such a table; nil if it has none.
	Start func(table *costmodel.Table) devicemap.Map
	// Fullest returns the map whose fullest GPU needs least, of GPUs with the same memory; nil: none.
	Fullest func(table *costmodel.Table) devicemap.Map
	// Stages returns the best map of another method that recomputes all blocks of a stage or none, and
	// these blocks; nil if there is none. The answer is no worse.
	Stages func() (placement devicemap.Map, again []bool)
}

// Choice is a pipeline with its costs and figures.
type Choice struct {
	Kind  costmodel.ScheduleKind
	Map   devicemap.Map
	Table *costmodel.Table
	Step  float64 // seconds
	Share float64 // the largest
	Tried int     // pipelines evaluated, of the whole search

	used  []int64 // bytes, by GPU
	cuts  []int   // of items
	again []bool
	form  form
	order orders.Order // nil: none of the search's own
	rule  *orders.Rule // that made it
}

// Fits reports that no GPU needs more than its budget.
func (choice *Choice) Fits() bool { return choice.Share <= 1 }

// better reports a choice that fits, or fits more nearly, and then has the shorter step.
func (choice *Choice) better(other *Choice) bool {
	if other == nil {
		return true
	}
	over, most := max(1, choice.Share), max(1, other.Share)
	if over != most {
		return over < most
	}
	return choice.Step < other.Step*(1-1e-12)
}

// ErrNone says that no order of the question runs on these GPUs.
var ErrNone = errors.New("no schedule runs here")

type search struct {
	*Question
	ctx     context.Context
	tried   int
	priced  map[*costmodel.Table]*prices
	quick   map[costmodel.ScheduleKind]*Choice // of published orders
	of      map[place]*Choice                  // the best
	plains  map[form]costmodel.ScheduleKind
	batches int64 // micro-batches
}

func newSearch(ctx context.Context, question *Question) *search {
	return &search{Question: question, ctx: ctx, priced: map[*costmodel.Table]*prices{}, quick: map[costmodel.ScheduleKind]*Choice{}, of: map[place]*Choice{}, plains: map[form]costmodel.ScheduleKind{}, batches: max(1, question.Items.In.Costs.Workload.MicroBatches)}
}

// Solve returns the best choice that it finds. Errors are [ErrNone], with the last reason, or those
// of Table.
func Solve(ctx context.Context, question *Question) (*Choice, error) {
	search := newSearch(ctx, question)
	best, failed := search.published(math.Inf(1), !question.Own)
	if best == nil {
		return nil, errors.Join(ErrNone, failed)
	}
	if question.Own {
		if short := question.Short; short != nil {
			fewer := newSearch(ctx, short)
			_, _ = fewer.published(math.Inf(1), false) // what it finds is in of
			fewer.ownForms()
			search.long(fewer)
			search.tried += fewer.tried
		} else {
			search.ownForms()
		}
		best = search.best()
		if best.Fits() { // the other methods are slow, and seldom find a shorter step than these
			_, _ = search.published(exact*best.Step, true)
		} else if least, _ := search.least(); least != nil { // the order that needs least
			search.keep(least)
			search.turns(form{}, least.cuts, least.again, nil, effort)
		}
		best = search.best()
	} else if !best.Fits() {
		if least, _ := search.least(); least != nil {
			search.keep(least)
			best = search.best()
		}
	}
	best.Tried = search.tried
	return best, nil
}

// ownForms looks for orders of every form, then again for the best of each place, and from the cuts of
// smaller budgets.
func (search *search) ownForms() {
	for _, at := range forms {
		if start := search.of[at.place]; start != nil && !search.stopped() {
			search.turns(at, start.cuts, start.again, nil, effort)
		}
	}
	best := search.best()
	for _, at := range places {
		if found := search.of[at]; found != nil && best.Fits() && found.Step <= near*best.Step {
			search.turns(formOf(found.Kind), found.cuts, found.again, nil, more*effort)
			search.turns(form{at, true, false}, found.cuts, found.again, nil, effort)
			search.fromRungs(at, search.of[at])
			if found = search.of[at]; found.rule != nil {
				search.turns(found.form, found.cuts, found.again, found, more*effort)
			}
		}
	}
}

// A form has so many passes placed by trial, and more times as many if it is the best of a place. An order has so
// many passes moved. A place is searched again within near times the best step, a published order's cuts within exact.
const (
	effort = 150_000
	moves  = 4_000
	more   = 2
	near   = 1.15
	exact  = 1.08
)

// place is where the chunks of an order are, and form also whether their backwards have two halves.
type place struct{ vee, loops bool }

var places = [...]place{{}, {loops: true}, {vee: true}}

type form struct {
	place
	split bool
	first bool // and those of the first chunk are whole
}

// forms are tried for each place. The best of a place also tries all backwards in halves.
var forms = func() (out []form) {
	for _, at := range places {
		out = append(out, form{at, false, false}, form{at, true, true})
	}
	return out
}()

func formOf(kind costmodel.ScheduleKind) form {
	return form{place{kind.Vee(), kind.Loops()}, kind.Split(), kind.Split()}
}

// keep keeps the best choice of each place.
func (search *search) keep(found *Choice) {
	if at := formOf(found.Kind).place; found.better(search.of[at]) {
		search.of[at] = found
	}
}

// best returns the best choice found; nil: none.
func (search *search) best() (best *Choice) {
	for _, at := range places {
		if found := search.of[at]; found != nil && found.better(best) {
			best = found
		}
	}
	return best
}

// published looks for the best cuts and blocks for every published order. If others, other methods
// look for those of orders whose step is below a length. It returns the best choice and the last
// error.
func (search *search) published(below float64, others bool) (best *Choice, failed error) {
	for _, kind := range search.Kinds {
		if known := search.quick[kind]; search.best() != nil && search.stopped() || known != nil && known.Fits() && known.Step > below {
			continue
		}
		found, err := search.cut(kind, others)
		if found == nil {
			failed = err
			continue
		}
		search.quick[kind] = found
		search.keep(found)
	}
	return search.best(), failed
}

// stopped reports that no time is left.
func (search *search) stopped() bool { return search.ctx.Err() != nil }

// cut returns the best cuts and blocks for a published order. It starts from even cuts, or from those
// of other methods, with no block recomputed and with all.
func (search *search) cut(kind costmodel.ScheduleKind, others bool) (best *Choice, failed error) {
	best = search.quick[kind]
	try := func(cuts []int, again []bool) {
		if cuts == nil {
			return
		}
		if found, err := search.improve(kind, cuts, again); err != nil {
			failed = err
		} else if found.better(best) {
			best = found
		}
	}
	known := best != nil
	for _, all := range []bool{false, true} {
		again := slices.Repeat([]bool{all}, len(search.Blocks))
		prices, err := search.prices(kind, again)
		if err != nil {
			return best, err
		}
		if !known {
			try(prices.even(search.schedule(kind)), again)
		}
		if others {
			try(search.cutsOf(kind, search.Start(prices.Table)), again)
		}
		if len(search.Blocks) == 0 {
			break
		}
	}
	if search.Stages != nil {
		placement, again := search.Stages()
		try(search.cutsOf(kind, placement), again)
	}
	return best, failed
}
