package assignment

import (
	"cmp"
	"slices"
)

// MemoryMoment is a time in a step, the same on every device, with what each item
// holds then at least: a device's peak is at least the sum over its items. The
// average over the devices of the best moment bounds every map.
//
// A device that holds a heavy unit also has that unit's transient at the
// moment (and the library's workspaces): its charge. What the heavy units
// promise, weight, leaves out what of the others is not sure to be there.
type MemoryMoment struct {
	Name   string
	Weight []int64 // per kind, of one item
	Total  int64
	light  int64 // the part of total in items without a heavy unit
	// charge is what a device with a heavy unit needs in addition, without its
	// workspaces; charged reports that there are heavy units.
	charge  int64
	charged bool
	output  bool // the model's outputs are there, on the input's device
}

// Headroom is what each device can hold of the moment's bytes if it needs no more
// than caps, and what more there can be where devices hold light items only.
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
	// A device with light items only has no charge. That gains something only
	// if its light items exceed its free memory under the charge. So the devices
	// that gain have less free memory, together, than there are light bytes.
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

// Spare is what the devices can hold under caps beyond the moment's bytes;
// negative where they cannot hold those.
func (moment *MemoryMoment) Spare(problem *Problem, caps []int64) int64 {
	byDevice, spare := moment.Headroom(problem, caps)
	for _, free := range byDevice {
		spare += free
	}
	return spare - moment.Total
}

// Caps are more than the bytes that a share allows each device, by less than
// two.
func (problem *Problem) Caps(share float64) []int64 {
	caps := make([]int64, len(problem.Devices))
	for device := range caps {
		caps[device] = int64(share*float64(problem.Devices[device].Budget)) + 1 // past the rounding
	}
	return caps
}

// maxMoments is how many moments a search asks at every node.
const maxMoments = 8

// Tightest are the moments with least to spare at a share.
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

// Average is the largest share that the moments prove no map to be below, and
// the name of the moment.
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
