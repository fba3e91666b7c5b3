package boundprice

import (
	"context"
	"math"
	"sort"
)

// tails are the best ways to go on, for each step and state, by rising load and worth,
// less what bytes cost: of[step], from first[step][state] on. Those are left out that, by
// the Lagrangian, no way to the state makes worth what is asked for.
type tails struct {
	of    [][]tail
	first [][]int32
	many  int // of all steps
	// need is what was asked for, less what the room costs at mu.
	need, mu float64
	// fit are the tails of the state that labels are asked about which fit behind the last of
	// them.
	fit []tail
}

// tables are the tails of the latest walk, and of that before; walkers that are not asked
// at once share them. Both: those before hold too.
type tables struct {
	tails, others tails
	both          bool
}

type tail struct{ load, worth float64 }

// mostTails bounds the memory of both tables, 16 bytes each. With more of them, those of a
// state are joined in half of the cells, mostJoined times as wide at the most: that is of
// use where few states have nearly all of them.
const mostTails, mostJoined = 12_000_000, 4

// rounding is how much sums may differ that are added up in another order.
const rounding = 1e-12

// back walks from the end, with at most beam tails of a state. It returns false where the
// context ends or the tails are too many.
func (walk *walker) back(ctx context.Context, prices []float64, limit, need float64, beam int) (done bool) {
	walk.advance(walk, prices)
	paid := walk.ofRoom(walk.mu)
	walk.beam, walk.cut, walk.both = beam, 0, false
	walk.tails, walk.others = walk.others, walk.tails
	all := &walk.tails
	for len(all.first) <= len(walk.Order) {
		all.first, all.of = append(all.first, nil), append(all.of, nil)
	}
	all.mu = walk.mu
	all.need = need - paid - rounding*(math.Abs(need)+paid)
	for !walk.allBack(ctx, prices, limit) {
		if ctx.Err() != nil || walk.joined == mostJoined {
			*all = tails{}
			return false
		}
		walk.joined *= 2
	}
	return true
}

// again has the tails of the walk before be those that labels are asked about.
func (walk *walker) again() { walk.tails, walk.others, walk.both = walk.others, walk.tails, false }

// allBack is one walk from the end. It returns false where the context ends or the tails
// are too many.
func (walk *walker) allBack(ctx context.Context, prices []float64, limit float64) (done bool) {
	all, last := &walk.tails, len(walk.Order)
	all.of[last], all.many = append(all.of[last][:0], tail{}), 1
	all.first[last] = append(all.first[last][:0], 0, 1)
	for step := last - 1; step >= 0; step-- {
		if ctx.Err() != nil || all.many+walk.others.many > mostTails {
			return false
		}
		walk.backStep(step, walk.gain(walk, prices, walk.Order[step]), limit)
	}
	return true
}

// backStep merges what follows each state's two choices.
func (walk *walker) backStep(step int, gain, limit float64) {
	const many = len(spread)
	all := &walk.tails
	turns, front, after := walk.turns[step], walk.front[step], all.first[step+1]
	toGo, least := walk.toGo[step], walk.least[step]
	of, behind, first := all.of[step][:0], all.of[step+1], all.first[step][:0]
	first = append(first, 0)
	var fork fork
	for i, part := range spread {
		fork.lambda[i] = part * walk.lambda
	}
	for state := range turns {
		has := (*[many]float64)(front[state*many:])
		if before := len(of); has[0]+toGo[state]+walk.lambda*limit > all.need {
			for i := range fork.worst {
				fork.worst[i] = all.need - has[i] - fork.lambda[i]*limit
			}
			turn := &turns[state]
			for choice, to := range turn.to {
				fork.ways[choice] = nil
				if int(to) < len(after)-1 {
					fork.ways[choice] = behind[after[to]:after[to+1]]
				}
			}
			walk.tailed += len(fork.ways[0]) + len(fork.ways[1])
			fork.loads, fork.gain, fork.limit = turn.load, gain, limit*(1+rounding)-least[state]
			of = walk.fewer(fork.merge(of), before, limit)
		}
		first = append(first, int32(len(of)))
	}
	all.first[step], all.of[step] = first, of
	all.many += len(of)
}

// fewer thins the tails of one state out: those of a beam, or those that would be too
// many.
func (walk *walker) fewer(of []tail, before int, limit float64) []tail {
	if len(of)-before > walk.beam {
		of = promisingTails(of, before, float64(walk.beam)/limit)
		walk.cut++
	}
	if cells := walk.cells / walk.joined; len(of)-before > cells {
		of = joinTails(of, before, float64(cells)/2/limit)
	}
	return of
}

// fork is where tails of two choices come together.
type fork struct {
	ways  [2][]tail
	loads [2]float64
	// gain is that of the second, limit that of all.
	gain, limit float64
	// lambda are what load costs in the front, worst what a tail must be worth more than by
	// each, load apart.
	lambda, worst [len(spread)]float64
}

// merge appends the tails that no other beats, and that can become worth what is asked
// for.
func (fork *fork) merge(of []tail) []tail {
	best, hit := math.Inf(-1), 0
	out, in := fork.ways[0], fork.ways[1]
	for len(out) > 0 || len(in) > 0 {
		var one tail
		if len(in) == 0 || len(out) > 0 && out[0].load+fork.loads[0] <= in[0].load+fork.loads[1] {
			one, out = tail{out[0].load + fork.loads[0], out[0].worth}, out[1:]
		} else {
			one, in = tail{in[0].load + fork.loads[1], in[0].worth + fork.gain}, in[1:]
		}
		if one.load > fork.limit {
			break
		}
		if one.worth <= best || fork.hopeless(one, &hit) {
			continue
		}
		best = one.worth
		of = append(of, one)
	}
	return of
}

// hopeless says so by a lambda; what told last is asked first.
func (fork *fork) hopeless(one tail, hit *int) bool {
	if one.worth-fork.lambda[*hit]*one.load <= fork.worst[*hit] {
		return true
	}
	for i := range fork.worst {
		if one.worth-fork.lambda[i]*one.load <= fork.worst[i] {
			*hit = i
			return true
		}
	}
	return false
}

// promisingTails keeps the one of the most worth of those whose loads share a cell.
func promisingTails(of []tail, before int, scale float64) []tail {
	cell, end := -1, before
	for _, one := range of[before:] {
		if at := int(one.load * scale); at != cell {
			cell = at
			end++
		}
		of[end-1] = one
	}
	return of[:end]
}

// joinTails makes one of those whose loads share a cell.
func joinTails(of []tail, before int, scale float64) []tail {
	cell, end := -1, before
	for _, one := range of[before:] {
		if at := int(one.load * scale); at != cell {
			cell = at
			of[end] = one
			end++
			continue
		}
		of[end-1].worth = one.worth
	}
	return of[:end]
}

// most is what the dearest set may be worth, and −Inf where none is worth what was
// asked for.
func (walk *walker) most() float64 {
	first := walk.tails.first[0]
	if first[1] == first[0] {
		return math.Inf(-1)
	}
	return walk.tails.of[0][first[1]-1].worth + walk.ofRoom(walk.mu)
}

// traced are the sets behind the dearest tails of the whole walk. Where tails were
// joined they may not fit.
func (walk *walker) traced(prices []float64, limit float64) (sets []found) {
	first := walk.tails.first[0]
	for at := first[1] - 1; at >= first[0] && len(sets) < walk.hand; at-- {
		want := walk.tails.of[0][at].worth
		sets = append(sets, walk.follow(func(step int, state int32) (choice int32) {
			choice, want = walk.source(step, state, want, walk.gain(walk, prices, walk.Order[step]))
			return choice
		}, limit, prices))
	}
	return sets
}

// source is the choice that a tail of so much worth begins with, and what it has left:
// no two of a state are worth the same.
func (walk *walker) source(step int, state int32, want, gain float64) (choice int32, left float64) {
	after := walk.tails.first[step+1]
	for choice, to := range walk.turns[step][state].to {
		if int(to) >= len(after)-1 {
			continue
		}
		adds := float64(choice) * gain
		some := walk.tails.of[step+1][after[to]:after[to+1]]
		at := sort.Search(len(some), func(at int) bool { return some[at].worth+adds >= want })
		if at < len(some) && some[at].worth+adds == want {
			return int32(choice), some[at].worth
		}
	}
	panic("boundprice: a tail that comes from nowhere")
}

// ask turns to a state, whose labels will come by rising load.
func (all *tails) ask(step, state int) {
	all.fit = all.of[step][all.first[step][state]:all.first[step][state+1]]
}

// hopeless says that a label cannot become worth what was asked for, with so much load
// left.
func (all *tails) hopeless(size, worth, left float64) bool {
	for len(all.fit) > 0 && all.fit[len(all.fit)-1].load > left {
		all.fit = all.fit[:len(all.fit)-1]
	}
	return len(all.fit) == 0 || worth-all.mu*size+all.fit[len(all.fit)-1].worth <= all.need
}
