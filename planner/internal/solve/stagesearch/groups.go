package stagesearch

// push moves an item one place along the row, or a few, with all that must go
// before it or after it and is in the way.
func (anneal *annealer) push(item int32, temperature float64) {
	here := anneal.rank[anneal.place[item]]
	reach := int32(1)
	if anneal.below(4) == 0 {
		reach += int32(anneal.below(3))
	}
	back := anneal.below(2) == 0
	to := here + reach
	if back {
		to = here - reach
	}
	if to < 0 || to >= int32(anneal.devices) {
		return
	}
	if anneal.gather(item, to, back) {
		anneal.together(anneal.at[to], temperature)
	}
}

// maxGroup bounds the items that move together: in series-parallel graphs whole
// branches do.
const maxGroup = 64

// gather collects the items that must follow one to a place in the row; false
// where they are too many.
func (anneal *annealer) gather(item, to int32, back bool) bool {
	anneal.stamp++
	anneal.group = append(anneal.group[:0], item)
	anneal.mark[item] = anneal.stamp
	next := &anneal.after
	if back {
		next = &anneal.before
	}
	for i := 0; i < len(anneal.group); i++ {
		for _, other := range next.of(anneal.group[i]) {
			rank := anneal.rank[anneal.place[other]]
			if anneal.mark[other] == anneal.stamp || back && rank <= to || !back && rank >= to {
				continue
			}
			if len(anneal.group) == maxGroup {
				return false
			}
			anneal.mark[other] = anneal.stamp
			anneal.group = append(anneal.group, other)
		}
	}
	return true
}

// together moves the group to one device where that is accepted.
func (anneal *annealer) together(to int32, temperature float64) {
	anneal.touched, anneal.was = append(anneal.touched[:0], to), anneal.was[:0]
	anneal.deviceMark[to] = anneal.stamp
	for _, item := range anneal.group {
		from := anneal.place[item]
		if !anneal.runs(item, to) {
			return
		}
		anneal.was = append(anneal.was, from)
		if anneal.deviceMark[from] != anneal.stamp {
			anneal.deviceMark[from] = anneal.stamp
			anneal.touched = append(anneal.touched, from)
		}
	}
	for _, item := range anneal.group {
		anneal.put(item, to)
	}
	anneal.decide(temperature)
}

// decide keeps the moves of the group, or takes them back.
func (anneal *annealer) decide(temperature float64) {
	more := 0.0
	for _, device := range anneal.touched {
		more += anneal.energy(device, anneal.load[device], anneal.bytes[device]) - anneal.energies[device]
	}
	if !anneal.accepts(more, temperature) {
		for i := len(anneal.group) - 1; i >= 0; i-- {
			anneal.put(anneal.group[i], anneal.was[i])
		}
		return
	}
	for _, device := range anneal.touched {
		anneal.settle(device)
	}
	anneal.note()
}

// swap exchanges an item with one of a device that it can move to, where the
// order allows both.
func (anneal *annealer) swap(item int32, temperature float64) {
	from := anneal.place[item]
	low, high := anneal.window(item)
	other, to := int32(-1), from
	for range swapTries {
		candidate := int32(anneal.below(anneal.items))
		to = anneal.place[candidate]
		if rank := anneal.rank[to]; to != from && rank >= low && rank <= high {
			other = candidate
			break
		}
	}
	if other < 0 || !anneal.runs(item, to) || !anneal.runs(other, from) {
		return
	}
	anneal.stamp++
	anneal.group, anneal.was = append(anneal.group[:0], item, other), append(anneal.was[:0], from, to)
	anneal.touched = append(anneal.touched[:0], from, to)
	anneal.put(item, to)
	low, high = anneal.window(other)
	if rank := anneal.rank[from]; rank < low || rank > high {
		anneal.put(item, from)
		return
	}
	anneal.put(other, from)
	anneal.decide(temperature)
}

// swapTries is how many items are looked at for one to exchange with.
const swapTries = 8

// line orders the devices at random among the orders that the items allow: two
// between which nothing is in order may change places, and those without items
// may stand anywhere.
func (anneal *annealer) line() {
	devices := anneal.devices
	waits, follows := make([]int32, devices), make([][]int32, devices)
	for item := range int32(anneal.items) {
		from := anneal.place[item]
		for _, other := range anneal.after.of(item) {
			if to := anneal.place[other]; to != from {
				waits[to]++
				follows[from] = append(follows[from], to)
			}
		}
	}
	ready := make([]int32, 0, devices)
	for device, count := range waits {
		if count == 0 {
			ready = append(ready, int32(device))
		}
	}
	for place := range int32(devices) {
		pick := anneal.below(len(ready))
		device := ready[pick]
		ready[pick] = ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		anneal.rank[device], anneal.at[place] = place, device
		for _, other := range follows[device] {
			waits[other]--
			if waits[other] == 0 {
				ready = append(ready, other)
			}
		}
	}
}
