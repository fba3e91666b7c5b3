package boundprice

import (
	"context"
	"math"
)

// seeker asks a walker one question: are there sets of more worth than need?
type seeker struct {
	*walker
	prices      []float64
	limit, need float64
	// over and under are sets that have more bytes than there is room for, and that have
	// not, each the latest that was dear at some price of a byte.
	over, under found
	sets        []found
	exact       int // walks from the end that left nothing out
}

// Labels of a state that find most of what there is to find, and nearly all.
const few, some = 24, 200

// price tells whether a set within the limit and the room is worth more than
// need: then it returns such sets, else none. It returns false where the context
// ends or the labels are too many. Where there is no room for tails labels go without
// them, and more are left.
func (walk *walker) price(ctx context.Context, prices []float64, limit, need float64) (sets []found, done bool) {
	seek := &seeker{walker: walk, prices: prices, limit: limit, need: need}
	for _, beam := range [...]int{few, math.MaxInt, math.MaxInt} {
		if seek.relaxed() || len(seek.sets) > 0 {
			return seek.sets, true
		}
		if !seek.back(ctx, prices, limit, need, beam) {
			if seek.bare = seek.exact == 0; !seek.bare {
				seek.again() // there is no room for two
			}
			break
		}
		if seek.none() || seek.look() {
			return seek.sets, true
		}
		if !seek.reprice() && seek.exact > 0 {
			break
		}
	}
	defer func() { walk.bare = false }()
	for _, beam := range [...]int{some, math.MaxInt} {
		if sets, done = walk.labelled(ctx, prices, limit, need, beam); len(sets) > 0 || !done || walk.cut == 0 {
			break
		}
	}
	return sets, done
}

// glance looks for sets worth more than need among the most promising labels of
// each state: it may miss some.
func (walk *walker) glance(ctx context.Context, prices []float64, limit, need float64) (sets []found) {
	seek := &seeker{walker: walk, prices: prices, limit: limit, need: need}
	for range 2 {
		if seek.relaxed() || !seek.back(ctx, prices, limit, seek.need, few) || seek.most() <= seek.need || seek.look() {
			return seek.sets
		}
		seek.reprice()
	}
	ends, _ := walk.labelled(ctx, prices, limit, seek.need, few)
	return append(seek.sets, ends...)
}

// relaxed asks the Lagrangian, which may say that there is none, and takes the sets that
// it met: others are to be worth more than they.
func (seek *seeker) relaxed() (none bool) {
	least, lucky := seek.relax(seek.walker, seek.prices, seek.limit)
	for _, set := range lucky {
		if set.worth > seek.need {
			seek.sets = append(seek.sets, set)
		}
	}
	for _, set := range seek.sets {
		seek.need = max(seek.need, set.worth)
	}
	return least <= seek.need
}

// none says for sure that the latest walk from the end found none.
func (seek *seeker) none() bool {
	seek.both = seek.exact > 0
	if seek.cut > 0 {
		seek.both = false
		return false
	}
	seek.exact++
	return seek.most() <= seek.need
}

// look takes the sets that the latest walk from the end leads to. Those that it is no
// use to take tell whether a byte was too cheap or too dear.
func (seek *seeker) look() (dear bool) {
	ends := seek.traced(seek.prices, seek.limit)
	for _, set := range ends {
		if set.fits && set.worth > seek.need {
			seek.sets, dear = append(seek.sets, set), true
		}
	}
	switch {
	case len(ends) == 0:
	case ends[0].size > seek.room:
		seek.over = ends[0]
	default:
		seek.under = ends[0]
	}
	return dear
}

// reprice is what a byte is to cost in the next walk: that at which both sets are worth
// the same, or more than it costs, or less. It returns false where that is no news.
func (seek *seeker) reprice() bool {
	if math.IsInf(seek.room, 1) {
		return false
	}
	const first, news = 0.1, 0.03
	switch over, under := &seek.over, &seek.under; {
	case over.items != nil && under.items != nil:
		seek.nextMu = max(0, (over.worth-under.worth)/(over.size-under.size))
	case over.items != nil:
		seek.nextMu = max(2*seek.mu, first*over.worth/over.size)
	case under.items != nil:
		seek.nextMu = seek.mu / 2
	default:
	}
	return math.Abs(seek.nextMu-seek.mu) > news*seek.mu
}
