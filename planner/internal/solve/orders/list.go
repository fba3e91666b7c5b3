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
	chunks [][]int
	state
	next    []int64 // by GPU: when it can choose its next pass
	not     []int64 // by GPU: it chooses nothing before
	rows    Order
	length  int64
	now     int64
	waiting int // passes that have not run
}

func newLister(problem *Problem) *lister {
	return &lister{
		Problem: problem, chunks: problem.of(), state: newState(problem),
		next: make([]int64, len(problem.Caps)), not: make([]int64, len(problem.Caps)), rows: make(Order, len(problem.Caps)),
	}
}

// run builds the order of a policy; its rows stay until the next run. It returns false from the
// moment that the order is no shorter than below.
func (list *lister) run(by policy, below int64) bool {
	list.policy, list.length, list.now = by, 0, 0
	list.state.clear(list.Problem)
	clear(list.not)
	list.waiting = list.passes()
	for gpu := range list.rows {
		list.rows[gpu] = list.rows[gpu][:0]
		list.next[gpu] = list.wake(gpu)
	}
	for list.waiting > 0 {
		gpu, now := 0, int64(never)
		for other, at := range list.next {
			if at < now {
				gpu, now = other, at
			}
		}
		if now >= below { // never: the limits of the policy exclude each other
			return false
		}
		pass, until := list.choose(gpu, now)
		if until > now {
			list.not[gpu] = until
			list.next[gpu] = list.wake(gpu)
			continue
		}
		list.start(gpu, now, pass)
	}
	return list.length < below
}

// start runs a pass.
func (list *lister) start(gpu int, now int64, pass Pass) {
	end := list.state.start(list.Problem, gpu, now, pass)
	list.now = now
	list.rows[gpu] = append(list.rows[gpu], pass)
	list.length, list.not[gpu] = max(list.length, end), 0
	list.waiting--
	list.next[gpu] = list.wake(gpu)
	if next, sends := list.sends(pass); sends {
		if to := list.Chunks[next.Chunk].GPU; to != gpu {
			list.next[to] = list.wake(to)
		}
	}
	if earlier, _, waits := list.before(pass); waits && list.Ahead > 0 { // its sender may go on
		if from := list.Chunks[earlier.Chunk].GPU; from != gpu {
			list.next[from] = list.wake(from)
		}
	}
}

// can reports that the policy and the memory allow a pass.
func (list *lister) can(pass Pass) bool {
	if pass.Kind == Forward && list.ran[index(pass)]-list.ran[index(Pass{Input, pass.Chunk})] >= int(list.most[pass.Chunk]) {
		return false
	}
	return !list.ahead(pass) && list.fits(list.Problem, pass)
}

// ahead reports that the chunk that waits for a pass is too far behind.
func (list *lister) ahead(pass Pass) bool {
	next, sends := list.sends(pass)
	return list.Ahead > 0 && sends && list.ran[index(pass)]-list.ran[index(next)] >= list.Ahead
}

// wake returns when a GPU can choose its next pass.
func (list *lister) wake(gpu int) int64 {
	at := int64(never)
	for _, i := range list.chunks[gpu] {
		for kind := range list.Chunks[i].kinds() {
			pass := Pass{kind, i}
			comes := list.comes(list.Problem, pass)
			if comes == never {
				continue
			}
			if comes = max(comes, list.free[gpu], list.not[gpu], list.now); comes < at && list.can(pass) {
				at = comes
			}
		}
	}
	return at
}

// choose returns the pass that a GPU runs now, or until when it waits.
func (list *lister) choose(gpu int, now int64) (best Pass, until int64) {
	rank, soon := int32(math.MaxInt32), int64(never)
	for _, i := range list.chunks[gpu] {
		for kind := range list.Chunks[i].kinds() {
			pass := Pass{kind, i}
			comes := list.comes(list.Problem, pass)
			if comes == never || !list.can(pass) {
				continue
			}
			if comes > now {
				if kind != Weight {
					soon = min(soon, comes)
				}
				continue
			}
			if list.rank[index(pass)] < rank {
				best, rank = pass, list.rank[index(pass)]
			}
		}
	}
	if best.Kind == Weight && list.patient[gpu] && soon < now+list.Chunks[best.Chunk].Weight {
		return best, soon
	}
	return best, now
}
