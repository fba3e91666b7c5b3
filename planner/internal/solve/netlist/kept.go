package netlist

// Kept is an order that the two sides of a frontier keep: what comes after an item
// that is out is out too, as the side of those in stands first. Some items may have
// their side already.
type Kept struct {
	// Before and After are all that must come before and after an item.
	Before, After [][]int32
	// Fixed is the side of an item that has one: [Left] or [Taken]; [Neither]: it may
	// have either. All that must come before what is Taken is Taken, too, and all that
	// must come after what is Left is Left.
	Fixed []byte
}

// keeper tells which items to come have a side already, for what was chosen: they
// have a byte of the state each as soon as one that they are in order with was
// chosen.
type keeper struct {
	*Kept
	slot []int // of each item; −1: none
	done []bool
	// follow are the slots of those to come that an item's side tells of, by side.
	follow [2][]int
}

func newKeeper(kept *Kept) *keeper {
	keep := &keeper{Kept: kept, slot: make([]int, len(kept.Before)), done: make([]bool, len(kept.Before))}
	for item := range keep.slot {
		keep.slot[item] = -1
	}
	return keep
}

// open gives slots to what an item's side tells of.
func (keep *keeper) open(level *layer, item int32) {
	if keep == nil {
		return
	}
	keep.done[item] = true
	for choice, others := range [2][]int32{keep.After[item], keep.Before[item]} {
		keep.follow[choice] = keep.follow[choice][:0]
		for _, other := range others {
			if keep.done[other] || keep.Fixed[other] != Neither {
				continue
			}
			if keep.slot[other] < 0 {
				keep.slot[other] = level.take()
			}
			keep.follow[choice] = append(keep.follow[choice], keep.slot[other])
		}
	}
}

// close gives an item's slot back.
func (keep *keeper) close(level *layer, item int32) {
	if keep != nil && keep.slot[item] >= 0 {
		level.vacant = append(level.vacant, keep.slot[item])
		keep.slot[item] = -1
	}
}

// allows says whether an item may have a side, and then tells it to those to come.
func (keep *keeper) allows(state []byte, item int32, choice int) bool {
	if keep == nil {
		return true
	}
	side := byte(wireOut + choice)
	if fixed := keep.Fixed[item]; fixed != Neither && fixed != side {
		return false
	}
	if at := keep.slot[item]; at >= 0 {
		if state[at] != 0 && state[at] != side {
			return false
		}
		state[at] = 0
	}
	for _, at := range keep.follow[choice] {
		state[at] = side
	}
	return true
}
