package devicemap

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// worst is the verdict of all devices together.
func worst(devices []Prediction) Verdict {
	for _, verdict := range []Verdict{tooLarge, tight} {
		if slices.ContainsFunc(devices, func(prediction Prediction) bool { return prediction.Verdict == verdict }) {
			return verdict
		}
	}
	return fits
}

// outsideTorch are the runtimes whose tensors are not in PyTorch's caching
// allocator.
var outsideTorch = []string{"jax", costmodel.Devmap}

// poolNotes say of each group of tight devices what the allocator does there.
func poolNotes(devices []Prediction, runtime string) []string {
	var notes []string
	for i := 0; i < len(devices); {
		end := i + 1
		for end < len(devices) && likewise(&devices[i], &devices[end]) {
			end++
		}
		if devices[i].Verdict == tight {
			notes = append(notes, tightNote(devices[i:end], runtime))
		}
		i = end
	}
	return notes
}

// likewise reports two devices about which the note is the same.
func likewise(one, other *Prediction) bool {
	return one.Verdict == other.Verdict && one.HeadroomBytes == other.HeadroomBytes && one.Predicted.SlackBytes == other.Predicted.SlackBytes
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

// bandNotes name the device that has most to fear from the band of the prediction: its
// peak fits, and the band's high end does not. A verdict is of the peak itself.
func bandNotes(band float64, devices []Prediction) []string {
	worst, missing := -1, int64(0)
	for i := range devices {
		device := &devices[i]
		ends := device.Predicted.PeakRangeBytes
		if band == 0 || len(ends) != 2 || device.HeadroomBytes < 0 {
			continue
		}
		if lacks := ends[1] + device.Predicted.OverheadBytes - device.Budget; lacks > missing {
			worst, missing = i, lacks
		}
	}
	if worst < 0 {
		return nil
	}
	device := &devices[worst]
	return []string{fmt.Sprintf("the prediction's band of ±%.0f%% includes a miss: GPU %d may need up to %v and has %v",
		100*band, device.Device, costmodel.Bytes(device.Predicted.PeakRangeBytes[1]+device.Predicted.OverheadBytes), costmodel.Bytes(device.Budget))}
}
