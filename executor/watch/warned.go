package watch

import (
	"cmp"
	"iter"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// allowance is a warning of a plan that allows for other bytes than those predicted. A plan file
// has warnings as texts. A part of each text identifies it; a test compares these parts with the
// texts of plans.
type allowance struct {
	text       *regexp.Regexp
	more, less bool
	first      bool // for the first device alone
	// bytes returns how many bytes the warning names, given the prediction; nil: it names no
	// number.
	bytes func(found []string, predicted int64) int64
}

// size is a number of bytes as [costmodel.Bytes] prints it.
const size = `([\d.]+ (?:[GMK]i)?B)`

var allowances = []allowance{
	{text: regexp.MustCompile(`every peak may be (\d+)% lower or higher`), more: true, less: true, bytes: percent},
	{text: regexp.MustCompile(`some GPUs also keep the old ones, and their peak is up to ` + size + ` higher`), more: true, bytes: printed},
	{text: regexp.MustCompile(`load without map_location puts ` + size + ` on GPU 0`), more: true, first: true, bytes: printed},
	{text: regexp.MustCompile("after `del model` " + size + ` stay on every GPU`), more: true, bytes: printed},
	{text: regexp.MustCompile(`are not counted, so peaks are lower bounds`), more: true},
	{text: regexp.MustCompile(`attention runs in fp32 with it; under autocast`), less: true},
	{text: regexp.MustCompile(`the weights are stored as .* from the config alone they are counted as`), more: true, less: true},
}

func percent(found []string, predicted int64) int64 {
	value, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return 0
	}
	return predicted * min(value, 100) / 100
}

// printed returns a size that was rounded to its last digit, plus half of that digit.
func printed(found []string, _ int64) int64 {
	var value float64
	var unit string
	for i, letter := range found[1] {
		if letter != ' ' {
			continue
		}
		value, _ = strconv.ParseFloat(found[1][:i], 64) // digits and a point, by the pattern
		unit = found[1][i+1:]
	}
	last := map[string]float64{"GiB": (1 << 30) / 200., "MiB": (1 << 20) / 20., "KiB": (1 << 10) / 20., "B": 0}[unit]
	whole := map[string]float64{"GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10, "B": 1}[unit]
	return int64(math.Min(value*whole+last, 1<<60))
}

// warned names the warnings that allow for a difference in allocated memory.
func (of *explained) warned(beyond int64) {
	for _, warning := range of.plan.Warnings {
		for i := range allowances {
			allowed := &allowances[i]
			found := allowed.text.FindStringSubmatch(warning)
			if found == nil || beyond > 0 && !allowed.more || beyond < 0 && !allowed.less || allowed.first && of.Device != 0 {
				continue
			}
			of.allow(allowed, found, warning, beyond)
		}
	}
}

func (of *explained) allow(allowed *allowance, found []string, warning string, beyond int64) {
	if allowed.bytes == nil {
		of.say("the plan warned of such a difference: %s", warning)
		return
	}
	bytes := allowed.bytes(found, of.predicted.PeakAllocatedBytes)
	if distance(beyond, 0) <= bytes {
		of.say("the plan warned of as much: %s", warning)
		return
	}
	of.say("the plan warned of %v of it: %s", costmodel.Bytes(bytes), warning)
}

// closeShare is how close a variant must be to the measurement of every device: one in 200. Most
// predictions are closer. Those of small models are not, as the allocator's blocks are a larger
// part of them.
const closeShare = 200

// nearer is how many times closer than the plan's own a variant's prediction must be: one that is
// hardly closer says nothing.
const nearer = 4

// tried are the variants that predict every device, from those with the fewest changes on, and how
// many were tried.
type tried struct {
	fit   []Variant
	count int
	err   error
}

// try ends once a variant fits as closely as a confirmed plan, and the next ones need more changes.
// A variant that is only near may be a coincidence.
func try(plan *devicemap.Plan, measured []Measured, variants func() (iter.Seq[Variant], error)) (found tried) {
	if variants == nil {
		return found
	}
	all, err := variants()
	if err != nil {
		return tried{err: err}
	}
	enough := -1 // changes of the first that is near enough
	for variant := range all {
		if enough >= 0 && variant.Changes > enough {
			break
		}
		found.count++
		if !variant.fits(plan, measured) {
			continue
		}
		found.fit = append(found.fit, variant)
		if enough < 0 && variant.isPredicted(measured) {
			enough = variant.Changes
		}
	}
	return found
}

// varied names at most three variants that predict what every device allocated, the
// nearest first, if the plan does not.
func (of *explained) varied(others func() tried) {
	if !of.measured.known() || of.measured.distance(of.predicted.PeakAllocatedBytes) <= closeEnough(of.predicted.PeakAllocatedBytes) {
		return
	}
	found := others()
	if found.err != nil {
		of.say("other settings were not tried: %v", found.err)
		return
	}
	slices.SortStableFunc(found.fit, func(one, other Variant) int {
		return cmp.Compare(of.measured.distance(one.peak(of.Device)), of.measured.distance(other.peak(of.Device)))
	})
	for i := range found.fit[:min(mostNamed, len(found.fit))] {
		peak := found.fit[i].peak(of.Device)
		of.say("with %s the same plan would predict %v, %s from what was allocated, and be as near on every GPU", found.fit[i].Setting, costmodel.Bytes(peak), share(of.measured.distance(peak), peak))
	}
	if len(found.fit) == 0 && found.count > 0 {
		of.say("none of %d other settings, alone or together, predicts what was allocated on every GPU", found.count)
	}
}

const mostNamed = 3

// fits reports whether a variant predicts all devices, and is closer than the plan if that does
// not.
func (variant *Variant) fits(plan *devicemap.Plan, measured []Measured) bool {
	for i := range measured {
		peak, one := variant.peak(measured[i].Device), &measured[i]
		if peak == 0 || !one.known() || one.distance(peak) > max(sameBytes, peak/closeShare) {
			return false
		}
		at := slices.IndexFunc(plan.Devices, func(device devicemap.Prediction) bool { return device.Device == one.Device })
		if at < 0 {
			continue
		}
		planned := plan.Devices[at].Predicted.PeakAllocatedBytes
		if far := one.distance(planned); far > closeEnough(planned) && nearer*one.distance(peak) > far {
			return false
		}
	}
	return len(measured) > 0
}

// isPredicted reports whether a variant that fits would get the verdict "as predicted".
func (variant *Variant) isPredicted(measured []Measured) bool {
	for i := range measured {
		if peak := variant.peak(measured[i].Device); measured[i].distance(peak) > closeEnough(peak) {
			return false
		}
	}
	return true
}

// peak returns a variant's peak of a device in bytes; 0: it has none.
func (variant *Variant) peak(device int) int64 {
	for i := range variant.Devices {
		if variant.Devices[i].Device == device {
			return variant.Devices[i].Predicted.PeakAllocatedBytes
		}
	}
	return 0
}

// smallShare is the part of a peak that small additional processes may have: a 20th.
const smallShare = 20

// known reports whether the allocated peak is known, up to the peaks of small additional processes.
func (of *Measured) known() bool {
	return of.Torch != nil && of.Torch.Allocated.High-of.Torch.Allocated.Low <= of.Torch.Allocated.Low/smallShare
}

// distance returns how far a prediction is from the allocated peak, in bytes.
func (of *Measured) distance(predicted int64) int64 {
	return max(of.Torch.Allocated.Low-predicted, predicted-of.Torch.Allocated.High, 0)
}

func closeEnough(predicted int64) int64 { return max(sameBytes, predicted/sameShare) }
