package assignment

import (
	"cmp"
	"slices"
)

// MemoryMoment is a time in a step, the same on every device, with each item's least memory at that
// time. A device's peak is at least the sum over its items. The average over the devices at the
// best moment bounds every map.
//
// A device with a heavy unit also has that unit's transient at the moment and the library's
// workspaces: its charge. Weight counts full memory for heavy units. For the others it counts only
// memory that is certain.
type MemoryMoment struct {
	Name   string
	Weight []int64 // bytes of one item, by kind
	Total  int64
	light  int64 // the part of total in items without a heavy unit
	// charge is the additional memory of a device with a heavy unit, without its workspaces.
	// charged reports that there are heavy units.
	charge  int64
	charged bool
	output  bool // the moment includes the model's outputs, on the input's device
}

// Headroom returns the moment's bytes that each device can hold within caps. gain is the additional
// bytes that fit if devices have light items only.
func (moment *MemoryMoment) Headroom(problem *Problem, caps []int64) (free []int64, gain int64) {
	free = make([]int64, len(caps))
	charges := make([]int64, len(caps))
	for deviceIndex := range caps {
		device := &problem.Devices[deviceIndex]
		left := caps[deviceIndex] - device.Overhead - device.Resident.Buckets
		if moment.output {
			left -= device.Resident.Output
		}
		if moment.charged {
			charges[deviceIndex] = moment.charge + device.Resident.Workspace
			left -= charges[deviceIndex]
		}
		free[deviceIndex] = max(0, left)
	}
	if !moment.charged {
		return free, 0
	}
	// A device with light items only has no charge. That helps only if its light items exceed its
	// free memory under the charge. So these devices together have less free memory than there are
	// light bytes.
	sorted := slices.Clone(free)
	slices.Sort(sorted)
	slices.SortFunc(charges, func(a, b int64) int { return cmp.Compare(b, a) })
	var sum int64
	for i, free := range sorted {
		if sum += free; sum >= moment.light {
			break
		}
		gain += charges[i]
	}
	return free, min(gain, moment.light)
}

// Spare returns the bytes that remain free within caps at the moment; negative if the moment's
// bytes do not fit.
func (moment *MemoryMoment) Spare(problem *Problem, caps []int64) int64 {
	byDevice, spare := moment.Headroom(problem, caps)
	for _, free := range byDevice {
		spare += free
	}
	return spare - moment.Total
}

// Caps returns the bytes that a share allows on each device, rounded up by less than two bytes.
func (problem *Problem) Caps(share float64) []int64 {
	caps := make([]int64, len(problem.Devices))
	for device := range caps {
		caps[device] = int64(share*float64(problem.Devices[device].Budget)) + 1 // above the rounding error
	}
	return caps
}

// maxMoments is the number of moments that a search checks at every node.
const maxMoments = 8

// Tightest returns the moments with the least spare bytes at a share.
func (problem *Problem) Tightest(moments []MemoryMoment, share float64) []MemoryMoment {
	caps := problem.Caps(share)
	part := make([]float64, len(moments))
	order := make([]int, len(moments))
	for i := range moments {
		order[i], part[i] = i, float64(moments[i].Spare(problem, caps))/float64(moments[i].Total+1)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(part[i], part[j]) })
	out := make([]MemoryMoment, 0, maxMoments)
	for _, i := range order[:min(len(order), maxMoments)] {
		out = append(out, moments[i])
	}
	return out
}

// Average returns the largest share that the moments prove as a bound for every map, and the name
// of its moment.
func (problem *Problem) Average(moments []MemoryMoment) (share float64, at string) {
	fits := func(moment *MemoryMoment, limit float64) bool { return moment.Spare(problem, problem.Caps(limit)) >= 0 }
	for i := range moments {
		moment := &moments[i]
		if fits(moment, share) {
			continue
		}
		lo, hi := share, max(share, 1)
		for !fits(moment, hi) {
			lo, hi = hi, 2*hi
		}
		for range 60 {
			if mid := (lo + hi) / 2; fits(moment, mid) {
				hi = mid
			} else {
				lo = mid
			}
		}
		share, at = lo, moment.Name
	}
	return share, at
}
