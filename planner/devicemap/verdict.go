package devicemap

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Verdict says whether a device, or a plan, fits: "fits", "tight" or "no". It
// is tight if the peak fits, and the upper end of what the allocator's pool
// reserves does not.
type Verdict string

const (
	fits     Verdict = "fits"
	tight    Verdict = "tight"
	tooLarge Verdict = "no"
)

// verdicts are ordered from the best to the worst.
var verdicts = []Verdict{fits, tight, tooLarge}

// Fits reports that the peak fits, tightly or not.
func (verdict Verdict) Fits() bool { return verdict != tooLarge }

// Tight reports that the peak fits and that the allocator's pool may not.
func (verdict Verdict) Tight() bool { return verdict == tight }

// And returns the worse of two verdicts. The empty one changes nothing.
func (verdict Verdict) And(other Verdict) Verdict {
	if slices.Index(verdicts, other) > slices.Index(verdicts, verdict) {
		return other
	}
	return verdict
}

// Verdict compares the device's budget with the peak, and with the most that the
// allocator's pool reserves.
func (prediction *Prediction) Verdict() Verdict {
	left := prediction.CapacityBytes - prediction.ReservedBytes - prediction.Predicted.PeakAllocatedBytes - prediction.Predicted.OverheadBytes
	switch {
	case left < 0:
		return tooLarge
	case left < prediction.Predicted.SlackBytes[1]:
		return tight
	}
	return fits
}

// ReservedRange is the least and the most that the allocator's pool reserves at
// the peak.
func (predicted *Predicted) ReservedRange() (low, high int64) {
	return predicted.PeakAllocatedBytes + predicted.SlackBytes[0], predicted.PeakAllocatedBytes + predicted.SlackBytes[1]
}

// worst is the verdict of all devices together.
func worst(devices []Prediction) Verdict {
	verdict := fits
	for i := range devices {
		verdict = verdict.And(devices[i].Verdict())
	}
	return verdict
}

// outsideTorch are the runtimes whose tensors are not in PyTorch's caching
// allocator.
var outsideTorch = []string{"jax", costmodel.Devmap}

// PoolNotes say of each group of tight devices what the allocator does there.
func (plan *Plan) PoolNotes() []string { return poolNotes(plan.Devices, plan.Workload.Runtime) }

func poolNotes(devices []Prediction, runtime string) []string {
	var notes []string
	for i := 0; i < len(devices); {
		end := i + 1
		for end < len(devices) && likewise(&devices[i], &devices[end]) {
			end++
		}
		if devices[i].Verdict().Tight() {
			notes = append(notes, tightNote(devices[i:end], runtime))
		}
		i = end
	}
	return notes
}

// likewise reports two devices about which the note is the same.
func likewise(one, other *Prediction) bool {
	return one.Verdict() == other.Verdict() && one.HeadroomBytes == other.HeadroomBytes && one.Predicted.SlackBytes == other.Predicted.SlackBytes
}

func tightNote(devices []Prediction, runtime string) string {
	first := &devices[0]
	name := fmt.Sprintf("GPU %d is", first.Device)
	if len(devices) > 1 {
		name = fmt.Sprintf("GPUs %d–%d are", first.Device, first.Device+len(devices)-1)
	}
	note := fmt.Sprintf("%s tight: %v free at the peak, and the allocator may reserve %v beyond it", name, costmodel.Bytes(first.HeadroomBytes), costmodel.Bytes(first.Predicted.SlackBytes[1]))
	if slices.Contains(outsideTorch, runtime) {
		return note
	}
	// c10/cuda/CUDACachingAllocator.cpp: cudaMalloc fails, release_cached_blocks
	// frees the blocks that are not split, and the allocation is tried again. The
	// variable has the shorter name since torch 2.9.
	return note + "; on a full GPU, PyTorch frees its unused cached blocks and retries, but fragmented blocks stay and it can run out of memory; " +
		"PYTORCH_ALLOC_CONF=expandable_segments:True avoids that (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)"
}
