package watch

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"

	"github.com/devmap-dev/devmap/costmodel"
)

// allowance is a warning of a plan that leaves room for other bytes than those
// predicted. A plan file has warnings as texts: they are known by a part of them,
// which a test compares with the texts that plans have.
type allowance struct {
	text       *regexp.Regexp
	more, less bool
	first      bool // of the first device alone
	// room is how many bytes the warning names, of what was predicted; nil: it
	// names no number.
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

// printed is a size that was rounded to its last digit: at most half of that is
// missing.
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

// warned names the warnings that allow for a difference of what was allocated.
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

// closeShare is how near a variant comes to what was measured of every device: one
// in 200. Most predictions are nearer; those of small models are not, as the
// allocator's blocks are a larger part of them.
const closeShare = 200

// nearer is how much nearer than the plan's own a variant's prediction is to be:
// one that is hardly nearer says nothing.
const nearer = 4

// varied names the variants that predict what every device allocated, where the
// plan does not: the nearest, and no more than three.
func (of *explained) varied(measured []Measured, variants func() []Variant) {
	if of.AllocatedBytes == nil || same(of.measured.Torch.Allocated.High, of.predicted.PeakAllocatedBytes) {
		return
	}
	peak, most := of.measured.Torch.Allocated.High, 3
	type near struct {
		setting string
		peak    int64
	}
	var found []near
	for _, variant := range variants() {
		if predicted, all := variant.predicts(measured, of.Device); all && nearer*distance(predicted, peak) <= distance(of.predicted.PeakAllocatedBytes, peak) {
			found = append(found, near{variant.Setting, predicted})
		}
	}
	slices.SortStableFunc(found, func(one, other near) int {
		return cmp.Compare(distance(one.peak, peak), distance(other.peak, peak))
	})
	for _, one := range found[:min(most, len(found))] {
		of.say("with %s the same plan would predict %v, %s from what was allocated, and be as near on every GPU", one.setting, costmodel.Bytes(one.peak), share(distance(one.peak, peak), one.peak))
	}
}

// predicts is what a variant says of a device, and whether it holds of all.
func (variant *Variant) predicts(measured []Measured, device int) (peak int64, all bool) {
	peaks := make(map[int]int64)
	for i := range variant.Devices {
		peaks[variant.Devices[i].Device] = variant.Devices[i].Predicted.PeakAllocatedBytes
	}
	for i := range measured {
		torch := measured[i].Torch
		predicted, found := peaks[measured[i].Device]
		if !found || torch == nil || torch.Allocated.Low != torch.Allocated.High || distance(torch.Allocated.High, predicted) > max(sameBytes, predicted/closeShare) {
			return 0, false
		}
	}
	return peaks[device], len(measured) > 0
}
