package orders

import "math"

// policy is a rule by which each GPU chooses its next pass. The same rule makes orders of any number
// of micro-batches, so a rule found with few serves many.
type policy struct {
	rank    []int32 // by [index]: the lowest of the passes that can start runs
	most    []int32 // by chunk: micro-batches between its forward and its input's gradient
	patient []bool  // by GPU: no Weight runs if another pass comes before its end
}

const never = math.MaxInt64

// lister builds an order by a policy, pass by pass in the order of time. It reuses its memory.
type lister struct {
	*Problem
	policy
	state
	links  []link  // by [index]
	passes [][]int // by GPU: [index] of its passes
	comes  []int64 // by [index]: when the input of the next pass is there
	left   []int64 // by GPU: the time of the passes that have not run
	all    []int64 // of all passes
	next   []int64 // by GPU: it runs nothing before
	not    []int64 // by GPU: it chooses nothing before
	rows   Order
	length int64
	now    int64
	placed int // passes, of all runs
}

// link is a pass's place among the others.
type link struct {
	Pass
	gpu   int
	takes int64
	// later are the passes that wait for it, as indices. sends is the one on a neighbouring chunk and
	// from the one whose message it takes; −1: none.
	later       []int
	sends, from int
}

func newLister(problem *Problem) *lister {
	gpus, count := len(problem.Caps), len(problem.Chunks)*int(kinds)
	list := &lister{
		Problem: problem, state: newState(problem), links: make([]link, count), passes: make([][]int, gpus), comes: make([]int64, count),
		left: make([]int64, gpus), all: make([]int64, gpus), next: make([]int64, gpus), not: make([]int64, gpus), rows: make(Order, gpus),
	}
	for i := range problem.Chunks {
		chunk := &problem.Chunks[i]
		for kind := range chunk.kinds() {
			pass := Pass{kind, i}
			at := index(pass)
			one := &list.links[at]
			one.Pass, one.gpu, one.takes, one.sends, one.from = pass, chunk.GPU, chunk.takes(kind), -1, -1
			if next, sends := problem.sends(pass); sends {
				one.sends = index(next)
				one.later = append(one.later, one.sends)
			}
			if earlier, _, waits := problem.before(pass); waits && earlier.Chunk != i {
				one.from = index(earlier)
			}
			if kind+1 < chunk.kinds() && (kind == Input || i == len(problem.Chunks)-1) {
				one.later = append(one.later, at+1)
			}
			list.passes[chunk.GPU] = append(list.passes[chunk.GPU], at)
			list.all[chunk.GPU] += int64(problem.MicroBatches) * one.takes
		}
	}
	return list
}

// run builds the order of a policy; its rows stay until the next run. It returns false from the
// moment that the order is no shorter than below.
func (list *lister) run(by policy, below int64) bool {
	list.policy, list.length, list.now = by, 0, 0
	list.clear()
	clear(list.not)
	copy(list.left, list.all)
	for at := range list.comes {
		list.comes[at] = never
	}
	list.comes[0] = 0 // the first forward
	for gpu := range list.rows {
		list.rows[gpu] = list.rows[gpu][:0]
		list.next[gpu] = 0
	}
	for waiting := list.Problem.passes(); waiting > 0; {
		gpu, now := 0, int64(never)
		for other, at := range list.next {
			if at < now {
				gpu, now = other, at
			}
		}
		if now >= below-list.left[gpu] { // never: the limits of the policy exclude each other
			return false
		}
		at, until := list.choose(gpu, now)
		if until > now {
			list.next[gpu] = until
			continue
		}
		list.add(at, now)
		waiting--
	}
	return list.length < below
}

// add runs a pass.
func (list *lister) add(at int, now int64) {
	one := &list.links[at]
	gpu := one.gpu
	end := list.start(list.Problem, gpu, now, one.Pass)
	list.now = now
	list.placed++
	list.rows[gpu] = append(list.rows[gpu], one.Pass)
	list.length, list.not[gpu] = max(list.length, end), 0
	list.left[gpu] -= one.takes
	list.comes[at] = list.state.comes(list.Problem, one.Pass)
	for _, later := range one.later {
		list.comes[later] = list.state.comes(list.Problem, list.links[later].Pass)
	}
	list.next[gpu] = end
	if one.sends >= 0 {
		list.wake(one.sends)
	}
	if one.from >= 0 && list.Ahead > 0 { // its sender may go on
		list.wake(one.from)
	}
}

// wake tells the GPU of a pass that this may run sooner than it knows.
func (list *lister) wake(at int) {
	gpu := list.links[at].gpu
	if comes := max(list.free[gpu], list.not[gpu], list.now, list.comes[at]); comes < list.next[gpu] && list.can(at) {
		list.next[gpu] = comes
	}
}

// can reports that the policy and the memory allow a pass, and that the chunk that waits for it is
// not too far behind.
func (list *lister) can(at int) bool {
	one := &list.links[at]
	if one.Kind == Forward && list.ran[at]-list.ran[at+1] >= int(list.most[one.Chunk]) {
		return false
	}
	if list.Ahead > 0 && one.sends >= 0 && list.ran[at]-list.ran[one.sends] >= list.Ahead {
		return false
	}
	return one.Kind == Weight || list.fits(list.Problem, one.Pass)
}

// choose returns the pass that a GPU runs now, or until when it waits.
func (list *lister) choose(gpu int, now int64) (best int, until int64) {
	best = -1
	rank, soon, later := int32(math.MaxInt32), int64(never), int64(never)
	for _, at := range list.passes[gpu] {
		switch comes := list.comes[at]; {
		case comes > now:
			if comes < soon && list.can(at) {
				later = min(later, comes)
				if list.links[at].Kind != Weight {
					soon = comes
				}
			}
		case list.rank[at] < rank && list.can(at):
			best, rank = at, list.rank[at]
		}
	}
	if best < 0 {
		return best, later
	}
	if one := &list.links[best]; one.Kind == Weight && list.patient[gpu] && soon < now+one.takes {
		list.not[gpu] = soon
		return best, soon
	}
	return best, now
}
