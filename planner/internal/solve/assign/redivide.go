package assign

import (
	"math/rand/v2"
	"slices"
)

// redivide betters the best assignment that is known, on devices that are alike,
// down to a limit: the fullest device is put together with one or two others,
// and their items are divided anew so that the loads are as near to each other
// as subset sums allow. What is no worse is kept, so that the search drifts over
// assignments of like loads. It is a heuristic; the same steps give the same
// answer.
func (call *solver) redivide(limit int64, steps int64) []int {
	it := call.it
	parts := &division{it: it, held: make([][]int, len(it.problem.Budgets)), load: make([]int64, len(it.problem.Budgets))}
	for pos, device := range call.place {
		parts.held[device] = append(parts.held[device], pos)
		parts.load[device] += it.weight[pos]
	}
	random := rand.New(rand.NewPCG(uint64(steps), uint64(len(it.weight))))
	for step := range steps {
		fullest := slices.Index(parts.load, slices.Max(parts.load))
		if parts.load[fullest] <= limit || step%64 == 0 && call.ctx.Err() != nil {
			break
		}
		group := []int{fullest}
		for range 1 + random.IntN(2) {
			if device := random.IntN(len(parts.load)); !slices.Contains(group, device) {
				group = append(group, device)
			}
		}
		if len(group) > 1 {
			parts.divide(group, random)
		}
	}
	return parts.place()
}

// division is an assignment as the items that each device holds, by their
// places in the order of sizes.
type division struct {
	it    *itemTable
	held  [][]int
	load  []int64
	sums  reach
	sizes []int64
	ones  []int
}

// divide divides the items of a group of devices anew, unless that is worse.
func (parts *division) divide(group []int, random *rand.Rand) {
	var items []int
	total, largest := int64(0), int64(0)
	for _, device := range group {
		items = append(items, parts.held[device]...)
		total, largest = total+parts.load[device], max(largest, parts.load[device])
	}
	random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	var shares [][]int
	for left := int64(len(group)); left > 1; left-- {
		share, rest, sum := parts.nearest(items, total/left)
		if total -= sum; sum > largest || total > largest*(left-1) {
			return
		}
		shares, items = append(shares, share), rest
	}
	if total > largest {
		return
	}
	for i, share := range append(shares, items) {
		parts.held[group[i]], parts.load[group[i]] = share, 0
		for _, pos := range share {
			parts.load[group[i]] += parts.it.weight[pos]
		}
	}
}

// nearest is a set of items of the largest sum up to a room, and what is left.
// Where sums are kept in steps it may be over the room by a few of them.
func (parts *division) nearest(items []int, room int64) (share, rest []int, sum int64) {
	parts.sizes, parts.ones = parts.sizes[:0], parts.ones[:0]
	for _, pos := range items {
		parts.sizes, parts.ones = append(parts.sizes, parts.it.weight[pos]), append(parts.ones, 1)
	}
	parts.sums.build(parts.sizes, parts.ones, room)
	at := parts.sums.highest(room / parts.sums.quantum)
	for i, pos := range items {
		// The sum at is one of the items from i on; it stays one without item i,
		// or else the item is in it.
		if parts.sums.has(i+1, at) {
			rest = append(rest, pos)
			continue
		}
		share, sum = append(share, pos), sum+parts.it.weight[pos]
		at -= parts.it.weight[pos] / parts.sums.quantum
	}
	return share, rest, sum
}

// place is the device of each item.
func (parts *division) place() []int {
	place := make([]int, len(parts.it.weight))
	for device, held := range parts.held {
		for _, pos := range held {
			place[pos] = device
		}
	}
	return place
}

// seed fills a pool with sets to start a program from: several times over, the
// items in some order are laid on devices, each taking the fullest set of those
// at hand, some more than it holds.
func (it *itemTable) seed(known *pool, room int64) {
	const times, atHand = 12, 2
	random := rand.New(rand.NewPCG(uint64(room), uint64(len(it.weight))))
	parts := &division{it: it}
	each := max(2, atHand*int(room*int64(len(it.weight))/max(it.total, 1)))
	for range times {
		items := random.Perm(len(it.weight))
		for len(items) > 0 {
			hand := min(each, len(items))
			share, rest, sum := parts.nearest(items[:hand], room)
			if len(share) == 0 {
				break
			}
			items = append(rest, items[hand:]...)
			if sum <= room {
				known.add(it, it.taken(share))
			}
		}
	}
}

// taken counts a set's items by their kinds.
func (it *itemTable) taken(share []int) []taken {
	slices.Sort(share)
	var items []taken
	kind := 0
	for _, pos := range share {
		for pos >= it.first[kind]+it.count[kind] {
			kind++
		}
		if last := len(items) - 1; last >= 0 && items[last].kind == kind {
			items[last].count++
		} else {
			items = append(items, taken{kind, 1})
		}
	}
	return items
}
