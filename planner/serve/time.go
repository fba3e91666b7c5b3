package serve

import "github.com/devmap-dev/devmap/costmodel/serving"

// Seconds is the least time of a token of one sequence after so many others: devices work in turn,
// and each reads its weights and cache once at its bandwidth. Blocks and experts of the host take no
// time here. 0: the bandwidth of a device is unknown.
func (answer *Answer) Seconds(question *Question, context int64) (seconds float64) {
	set := answer.Set
	set.Context = context
	unit := int(set.HostBlocks)
	for i, count := range answer.Counts {
		if count > 0 && question.Devices[i].Bandwidth == 0 {
			return 0
		}
		seconds += question.seconds(&set, i, unit, unit+count)
		unit += count
	}
	return seconds
}

func (question *Question) seconds(set *serving.LlamaCPP, device, first, end int) float64 {
	if first == end {
		return 0
	}
	return float64(set.Read(question.Model, first, end)) / question.Devices[device].Bandwidth
}

// faster moves units to devices with a higher bandwidth, as long as no device gets more than a share
// of its budget. Each move passes a unit to a neighbour.
func (question *Question) faster(set *serving.LlamaCPP, share float64, extra []serving.Memory, counts []int) {
	devices := question.Devices
	same := true
	for i := range devices {
		if devices[i].Bandwidth == 0 {
			return
		}
		same = same && devices[i].Bandwidth == devices[0].Bandwidth
	}
	limits := question.limits(share, extra)
	for moved := !same; moved; {
		moved = false
		for i := range len(devices) - 1 {
			from, to := i, i+1
			if devices[from].Bandwidth > devices[to].Bandwidth {
				from, to = to, from
			}
			for counts[from] > 0 && devices[from].Bandwidth < devices[to].Bandwidth && question.takes(set, limits, counts, to, from) {
				counts[from]--
				counts[to]++
				moved = true
			}
		}
	}
}

// takes reports that a device has room for one more unit, of a neighbour.
func (question *Question) takes(set *serving.LlamaCPP, limits []int64, counts []int, to, from int) bool {
	first := int(set.HostBlocks)
	for _, count := range counts[:to] {
		first += count
	}
	end := first + counts[to]
	rest := first - counts[from] // of the neighbour's run
	if from < to {
		first--
		return set.Run(question.Model, first, end).Total() <= limits[to] && set.Run(question.Model, rest, first).Total() <= limits[from]
	}
	return set.Run(question.Model, first, end+1).Total() <= limits[to] && set.Run(question.Model, end+1, end+counts[from]).Total() <= limits[from]
}
