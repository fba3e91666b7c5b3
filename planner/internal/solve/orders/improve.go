package orders

import (
	"math/rand/v2"
	"slices"
)

// climber improves a policy by changes of its parts.
type climber struct {
	*lister
	chunks [][]int // by GPU
	best   policy
	length int64 // of the best policy's order
	random *rand.Rand
	tried  int
}

// try keeps a policy whose order is no longer: it may be a step to a shorter one.
func (climb *climber) try(by policy) {
	climb.tried++
	if climb.run(by, min(climb.length, never-1)+1) {
		climb.best, climb.length = by.clone(), climb.lister.length
	}
}

func (by policy) clone() policy {
	return policy{slices.Clone(by.rank), slices.Clone(by.most), slices.Clone(by.patient)}
}

// starts tries simple policies: gradients or forwards first, the deepest or the earliest chunk
// first. They have as many micro-batches in flight as the way to the end and back needs.
func (climb *climber) starts() {
	way, busiest := newPaths(climb.Problem), int64(1)
	for _, work := range climb.all {
		busiest = max(busiest, work/int64(climb.MicroBatches))
	}
	count := int32(len(climb.Chunks))
	for form := range 16 {
		by := policy{make([]int32, count*int32(kinds)), make([]int32, count), make([]bool, len(climb.Caps))}
		for i := range count {
			deep := i
			if form&1 != 0 {
				deep = count - 1 - i
			}
			forward, input := 2*count, int32(0)
			if form&2 != 0 {
				forward, input = 0, 2*count
			}
			by.rank[index(Pass{Forward, int(i)})] = forward + deep
			by.rank[index(Pass{Input, int(i)})] = input + deep
			by.rank[index(Pass{Weight, int(i)})] = 4*count + deep
			if form&4 != 0 {
				by.rank[index(Pass{Weight, int(i)})] = count + deep
			}
		}
		for gpu := range by.patient {
			by.patient[gpu] = form&8 != 0
		}
		for _, tenths := range []int64{5, 8, 10, 12, 15, 20, 1 << 30} {
			for i := range by.most {
				by.most[i] = int32(min(int64(climb.MicroBatches), 1+(tenths*way.life[i]-1)/(10*busiest)))
			}
			climb.try(by)
		}
	}
}

// climb changes the best policy at random, and keeps what helps, for a number of passes placed.
func (climb *climber) climb(effort int, enough int64) {
	for last := climb.placed + effort; climb.placed < last && climb.length > enough; {
		by := climb.best.clone()
		for range 1 + climb.random.IntN(3) {
			climb.change(&by)
		}
		climb.try(by)
	}
}

// change changes a part of a policy, on one GPU or on all.
func (climb *climber) change(by *policy) {
	gpu := climb.random.IntN(len(climb.chunks))
	if len(climb.chunks[gpu]) == 0 {
		return
	}
	slot := climb.random.IntN(len(climb.chunks[gpu]))
	other := climb.random.IntN(len(climb.chunks[gpu]))
	kindOf := func(slot int) Kind {
		return Kind(climb.random.IntN(int(climb.Chunks[climb.chunks[gpu][slot]].kinds())))
	}
	kind, second := kindOf(slot), kindOf(other)
	what, step := climb.random.IntN(5), int32(1-2*climb.random.IntN(2))
	all := climb.random.IntN(2) == 0
	for at, chunks := range climb.chunks {
		if !all && at != gpu || slot >= len(chunks) || other >= len(chunks) {
			continue
		}
		switch what {
		case 0, 1:
			a, b := index(Pass{kind, chunks[slot]}), index(Pass{second, chunks[other]})
			by.rank[a], by.rank[b] = by.rank[b], by.rank[a]
		case 2, 3:
			by.most[chunks[slot]] = min(int32(climb.MicroBatches), max(1, by.most[chunks[slot]]+step))
		default:
			by.patient[at] = !by.patient[at]
		}
	}
}
