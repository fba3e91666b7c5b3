package boundprice

import (
	"math"
	"slices"
)

// step goes on by one item: for each state after it, the labels that lead there
// are merged in the order of their loads, and those dropped that another beats
// in load, size and worth.
func (walk *walker) step(step int, prices []float64, limit, need float64) {
	item := walk.Order[step]
	walk.next, walk.nextFirst = walk.next[:0], append(walk.nextFirst[:0], 0)
	into := walk.into[step]
	for state := range walk.States[step] {
		walk.ways = walk.ways[:0]
		for _, from := range into.from[into.first[state]:into.first[state+1]] {
			before := from >> 1
			way := way{at: walk.first[before], end: walk.first[before+1], choice: from & 1}
			way.load = walk.turns[step][before].load[from&1]
			if from&1 == 1 {
				way.size, way.worth = walk.size[item], prices[item]
			}
			way.gain = way.worth - walk.lambda*way.load - walk.mu*way.size
			if way.at < way.end && way.load <= limit {
				way.head = walk.labels[way.at].load + way.load
				walk.ways = append(walk.ways, way)
			}
		}
		before := len(walk.next)
		walk.ask(step+1, state, limit, need)
		walk.merge(limit)
		if len(walk.next)-before > walk.beam {
			walk.promising(before, float64(walk.beam)/limit)
			walk.cut++
		}
		if len(walk.next)-before > walk.cells {
			walk.next = join(walk.next, before, float64(walk.cells)/2/limit)
			walk.merged = true
		}
		walk.nextFirst = append(walk.nextFirst, int32(len(walk.next)))
	}
	walk.labels, walk.next = walk.next, walk.labels
	walk.first, walk.nextFirst = walk.nextFirst, walk.first
	walk.trace[step] = walk.trace[step][:0]
	for i := range walk.labels {
		walk.trace[step] = append(walk.trace[step], walk.labels[i].from)
		walk.labels[i].from = int32(i)
	}
}

// way is one arc into a state, with the labels that come along it.
type way struct {
	at, end           int32
	head              float64 // load of the first of them, here
	load, size, worth float64
	gain              float64
	choice            int32
}

// stair is a label that none so far beats in size and worth, and where it is.
type stair struct {
	size, worth float64
	at          int
}

// merge takes the labels of all ways that can still become worth what is asked
// for. Many ways are a heap by the load of their first label: where a wide sum ends,
// hundreds of states lead to one.
func (walk *walker) merge(limit float64) {
	ways := walk.ways
	room, best := walk.room, math.Inf(-1)
	sized := !math.IsInf(room, 1)
	walk.stairs = walk.stairs[:0]
	for at := len(ways)/2 - 1; at >= 0 && len(ways) > fewWays; at-- {
		settle(ways, at)
	}
	for len(ways) > 0 {
		pick := 0
		if len(ways) <= fewWays {
			pick = least(ways)
		}
		from := &ways[pick]
		if from.head > limit {
			return
		}
		walk.made++
		old := &walk.labels[from.at]
		// A struct of more than four fields would not be kept in registers.
		load, size, worth, gain := from.head, old.size+from.size, old.worth+from.worth, old.gain+from.gain
		trace := 2*from.at + from.choice
		from.at++
		if from.at < from.end {
			from.head = walk.labels[from.at].load + from.load
		} else {
			ways[pick] = ways[len(ways)-1]
			ways = ways[:len(ways)-1]
		}
		if len(ways) > fewWays {
			settle(ways, 0)
		}
		if size > room || gain <= walk.worst || !walk.bare && walk.hopeless(size, worth, limit*(1+rounding)-load) {
			continue
		}
		at, stands := len(walk.next)-1, worth > best // at: the one that beats it
		if sized {
			at, stands = walk.stands(size, worth)
		}
		if stands {
			best = worth
			walk.next = append(walk.next, label{load, size, worth, gain, trace})
		} else if walk.merged {
			walk.next[at].gain = max(walk.next[at].gain, gain) // it stands for both
		}
	}
}

// ask works out what labels of a state must have to become worth need.
func (walk *walker) ask(step, state int, limit, need float64) {
	paid := walk.lambda*limit + walk.ofRoom(walk.mu)
	walk.worst = need - walk.toGo[step][state] - paid - rounding*(math.Abs(need)+paid)
	if walk.bare {
		return
	}
	walk.tails.ask(step, state)
	if walk.both {
		walk.others.ask(step, state)
	}
}

// hopeless says so by all tails that there are.
func (walk *walker) hopeless(size, worth, left float64) bool {
	return walk.tails.hopeless(size, worth, left) || walk.both && walk.others.hopeless(size, worth, left)
}

// fewWays are no heap: looking at all is as quick.
const fewWays = 6

func least(ways []way) (pick int) {
	for i := 1; i < len(ways); i++ {
		if ways[i].head < ways[pick].head {
			pick = i
		}
	}
	return pick
}

// settle puts a way where it belongs in the heap, among those behind it.
func settle(ways []way, at int) {
	for next := 2*at + 1; next < len(ways); at, next = next, 2*next+1 {
		if next+1 < len(ways) && ways[next+1].head < ways[next].head {
			next++
		}
		if ways[at].head <= ways[next].head {
			return
		}
		ways[at], ways[next] = ways[next], ways[at]
	}
}

// promising keeps, of the labels whose loads share a cell, the one of the most
// worth less what its size costs.
func (walk *walker) promising(before int, scale float64) {
	cell, end, most := -1, before, 0.0
	for _, one := range walk.next[before:] {
		worth := one.worth - walk.mu*one.size
		switch at := int(one.load * scale); {
		case at != cell:
			cell, most = at, worth
			walk.next[end] = one
			end++
		case worth > most:
			most = worth
			walk.next[end-1] = one
		default:
		}
	}
	walk.next = walk.next[:end]
}

// stands says that no label so far, of less load, beats one in size and worth, or which
// does. The stairs are what they have: the larger a size, the more it is worth.
func (walk *walker) stands(size, worth float64) (by int, stands bool) {
	place, above := 0, len(walk.stairs)
	for place < above {
		if middle := (place + above) / 2; walk.stairs[middle].size <= size {
			place = middle + 1
		} else {
			above = middle
		}
	}
	if place > 0 && walk.stairs[place-1].worth >= worth {
		return walk.stairs[place-1].at, false
	}
	end := place
	for end < len(walk.stairs) && walk.stairs[end].worth <= worth {
		end++
	}
	walk.stairs = slices.Replace(walk.stairs, place, end, stair{size, worth, len(walk.next)})
	return 0, true
}

// join makes one label of those whose loads share a cell: the least load and
// size, the highest worth and gain, so that nothing is lost and a little is won.
func join(kept []label, before int, scale float64) []label {
	cell, end := -1, before
	for i := before; i < len(kept); i++ {
		if at := int(kept[i].load * scale); at != cell {
			cell = at
			kept[end] = kept[i]
			end++
			continue
		}
		into := &kept[end-1]
		into.size, into.gain = min(into.size, kept[i].size), max(into.gain, kept[i].gain)
		if kept[i].worth > into.worth {
			into.worth, into.from = kept[i].worth, kept[i].from
		}
	}
	return kept[:end]
}
