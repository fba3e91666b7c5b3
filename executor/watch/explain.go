package watch

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Measured is what was measured of a device that has its GPU to itself.
type Measured struct {
	Device int
	Torch  *OnGPU // nil: torch reported nothing
	// Used is the most that the command had in use on the GPU in one reading, with Interval between
	// readings; nil: not known. OfDevice: the owner is not known, so that Used is what all
	// processes added since the beginning.
	Used     *int64
	Interval time.Duration
	OfDevice bool
}

// Variant is the memory of the same map with other settings than the plan's.
type Variant struct {
	Setting string // a text that follows "with"
	Devices []devicemap.Prediction
	// Changes is how far the settings are from the plan's; fewer explain better.
	Changes int
}

// Explanation divides a device's difference, measured less predicted, in bytes. The three parts add
// up to the difference of the used memory; null: not known.
type Explanation struct {
	Device int `json:"device"`
	// AllocatedBytes is the part of the allocator's peak, and CacheBytes the part of the pool
	// beyond that peak. OutsideBytes is outside the pool: context, kernels, libraries.
	AllocatedBytes *int64   `json:"allocated_difference_bytes"`
	CacheBytes     *int64   `json:"cache_difference_bytes"`
	OutsideBytes   *int64   `json:"outside_difference_bytes"`
	Reasons        []string `json:"reasons"`
}

// How far an allocated peak may be from the prediction and count as predicted. Device maps whose
// rules are known are accurate to a thousandth, and allocators use blocks of up to 2 MiB.
const (
	sameShare = 1000
	sameBytes = 2 << 20
)

func same(measured, predicted int64) bool {
	return distance(measured, predicted) <= closeEnough(predicted)
}

func distance(one, other int64) int64 { return max(one-other, other-one) }

// Explain says of every measured device where its difference lies, which warning of the plan allows
// for it, and which variants predict the measured peaks. It asks for variants, in the order of
// their changes, only if a prediction did not hold. variants may be nil. Its error says why there
// are none. Explain names no cause without a measurement of it.
func Explain(plan *devicemap.Plan, measured []Measured, variants func() (iter.Seq[Variant], error)) []Explanation {
	others := sync.OnceValue(func() tried { return try(plan, measured, variants) })
	var all []Explanation
	for i := range measured {
		at := slices.IndexFunc(plan.Devices, func(one devicemap.Prediction) bool { return one.Device == measured[i].Device })
		if at < 0 {
			continue
		}
		of := explained{measured: &measured[i], predicted: &plan.Devices[at].Predicted, plan: plan}
		of.Device = measured[i].Device
		of.allocated()
		of.varied(others)
		of.cached()
		of.outside()
		all = append(all, of.Explanation)
	}
	return all
}

// explained is an explanation in the making.
type explained struct {
	Explanation
	measured  *Measured
	predicted *devicemap.Predicted
	plan      *devicemap.Plan
}

func (of *explained) say(format string, args ...any) {
	of.Reasons = append(of.Reasons, fmt.Sprintf(format, args...))
}

// allocated explains the part that the plan predicts to the byte, or in a range.
func (of *explained) allocated() {
	torch, predicted := of.measured.Torch, of.predicted.PeakAllocatedBytes
	switch {
	case torch == nil:
		of.say("torch's allocated memory is unknown: the difference is not split into allocated and cached memory")
		return
	case torch.Allocated.Low != torch.Allocated.High:
		of.say("torch allocated at least %v in one of %d processes, and at most %v in all, whose peaks need not have been at one moment: the difference is not split", costmodel.Bytes(torch.Allocated.Low), torch.Processes, costmodel.Bytes(torch.Allocated.High))
		return
	}
	peak := torch.Allocated.High
	beyond := peak - predicted
	of.AllocatedBytes = &beyond
	of.say("torch allocated %v at most, %s", costmodel.Bytes(peak), comparedTo(peak, predicted))
	if torch.Killed > 0 {
		of.say("%s killed: a peak of its last half second is in no figure", one(torch.Killed, "a process was", "%d processes were"))
	}
	if torch.OutOfMemory > 0 {
		of.say("%s found no memory (the last wanted %v): the peak is what there was room for", one(int(torch.OutOfMemory), "an allocation", "%d allocations"), costmodel.Bytes(torch.Wanted))
	}
	if !same(peak, predicted) {
		of.warned(beyond)
	}
}

// cached explains what the pool took from the driver beyond the allocated peak. It compares both
// peaks, which may be of different moments.
func (of *explained) cached() {
	torch := of.measured.Torch
	if of.AllocatedBytes == nil || torch.Reserved.Low != torch.Reserved.High {
		return
	}
	low, high := of.predicted.SlackBytes[0], of.predicted.SlackBytes[1]
	cache := torch.Reserved.High - torch.Allocated.High
	beyond := cache - (low+high)/2
	of.CacheBytes = &beyond
	allowed := "the plan allows for " + span(low, high)
	switch {
	case cache > high+sameBytes:
		of.say("torch's pool took %v beyond that from the driver (blocks that are free, or cut in pieces): %s, so %v more", costmodel.Bytes(cache), allowed, costmodel.Bytes(cache-high))
	case cache < low-sameBytes:
		of.say("torch's pool took %v beyond that from the driver: %s, so %v less", costmodel.Bytes(cache), allowed, costmodel.Bytes(low-cache))
	default:
		of.say("torch's pool took %v beyond that from the driver: %s", costmodel.Bytes(cache), allowed)
	}
}

// outside explains the memory that is in no pool. A reading may have missed the pool's peak, so
// that it is a lower bound.
func (of *explained) outside() {
	used := of.measured.Used
	switch {
	case used == nil:
		of.say("the command's memory outside torch is unknown: the memory of each process on the GPU is not reported")
		return
	case of.CacheBytes == nil:
		of.say("%v were held in a reading at most, readings %v apart, and %v were predicted", costmodel.Bytes(*used), of.measured.Interval, costmodel.Bytes(of.predicted.DeviceUsedBytes))
		return
	case *used < of.measured.Torch.Reserved.High:
		of.say("no reading, %v apart, met the peak of torch's pool (%v were read at most): what is outside it is not known", of.measured.Interval, costmodel.Bytes(*used))
		return
	}
	outside := *used - of.measured.Torch.Reserved.High
	beyond := outside - of.predicted.OverheadBytes
	of.OutsideBytes = &beyond
	if of.measured.OfDevice {
		of.say("%v were outside the pool, what other processes held may be among it (context, kernels, libraries), %s", costmodel.Bytes(outside), comparedTo(outside, of.predicted.OverheadBytes))
		return
	}
	of.say("%v or more were outside the pool (context, kernels, libraries), %s", costmodel.Bytes(outside), comparedTo(outside, of.predicted.OverheadBytes))
}
