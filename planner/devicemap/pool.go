package devicemap

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// worst returns the worst verdict of the devices.
func worst(devices []Prediction) Verdict {
	for _, verdict := range []Verdict{tooLarge, tight} {
		if slices.ContainsFunc(devices, func(prediction Prediction) bool { return prediction.Verdict == verdict }) {
			return verdict
		}
	}
	return fits
}

// outsideTorch lists the runtimes without PyTorch's caching allocator.
var outsideTorch = []string{"jax", costmodel.Devmap}

// poolNotes returns one note for all tight devices, about what the allocator does there.
func poolNotes(devices []Prediction, runtime string) []string {
	var numbers []int
	var free, slack []int64
	for i := range devices {
		if devices[i].Verdict == tight {
			numbers = append(numbers, devices[i].Device)
			free, slack = append(free, devices[i].HeadroomBytes), append(slack, devices[i].Predicted.SlackBytes[1])
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	return []string{tightNote(numbers, free, slack, runtime)}
}

// numbered returns the devices' names with a verb: GPU 3 is, GPUs 0–2 and 5 are.
func numbered(numbers []int) string {
	var runs []string
	for i := 0; i < len(numbers); {
		end := i + 1
		for end < len(numbers) && numbers[end] == numbers[end-1]+1 {
			end++
		}
		run := fmt.Sprint(numbers[i])
		if end > i+1 {
			run += fmt.Sprintf("–%d", numbers[end-1])
		}
		runs = append(runs, run)
		i = end
	}
	switch last := len(runs) - 1; {
	case len(numbers) == 1:
		return "GPU " + runs[0] + " is"
	case last == 0:
		return "GPUs " + runs[0] + " are"
	default:
		return "GPUs " + strings.Join(runs[:last], ", ") + " and " + runs[last] + " are"
	}
}

// between returns the smallest and the largest size, or the one size if they are equal.
func between(sizes []int64) string {
	low, high := costmodel.Bytes(slices.Min(sizes)).String(), costmodel.Bytes(slices.Max(sizes)).String()
	if low == high {
		return low
	}
	return low + " to " + high
}

func tightNote(numbers []int, free, slack []int64, runtime string) string {
	note := fmt.Sprintf("%s tight: %s free at the peak, and the allocator may reserve %s beyond it", numbered(numbers), between(free), between(slack))
	if slices.Contains(outsideTorch, runtime) {
		return note
	}
	// c10/cuda/CUDACachingAllocator.cpp: if cudaMalloc fails, release_cached_blocks frees the
	// blocks that are not split, and PyTorch tries again. Torch 2.9 shortened the variable's name.
	return note + "; on a full GPU, PyTorch frees its unused cached blocks and retries, but fragmented blocks stay and it can run out of memory; " +
		"PYTORCH_ALLOC_CONF=expandable_segments:True avoids that (PYTORCH_CUDA_ALLOC_CONF before torch 2.9)"
}

// bandNotes names the device that lacks most memory at the high end of the prediction's band,
// although its peak fits. Verdicts are about the peak itself.
func bandNotes(band float64, devices []Prediction) []string {
	device := Missing(band, devices)
	if device == nil {
		return nil
	}
	return []string{fmt.Sprintf("the prediction's band of ±%.3g%% includes a miss: GPU %d may need up to %v and has %v",
		100*band, device.Device, costmodel.Bytes(device.Predicted.PeakRangeBytes[1]+device.Predicted.OverheadBytes), costmodel.Bytes(device.Budget))}
}

// Missing returns the device that lacks most memory at the high end of the prediction's band,
// although its peak fits; nil if none does. The band is a part of the peak.
func Missing(band float64, devices []Prediction) *Prediction {
	var worst *Prediction
	missing := int64(0)
	for i := range devices {
		device := &devices[i]
		ends := device.Predicted.PeakRangeBytes
		if band == 0 || len(ends) != 2 || device.HeadroomBytes < 0 {
			continue
		}
		if lacks := ends[1] + device.Predicted.OverheadBytes - device.Budget; lacks > missing {
			worst, missing = device, lacks
		}
	}
	return worst
}

// preparedNotes says that the peak is the whole model before FSDP2 shards it.
func preparedNotes(table *costmodel.Table, devices []Prediction) []string {
	if table.Prepared == 0 || !slices.ContainsFunc(devices, func(device Prediction) bool { return strings.HasPrefix(device.Predicted.PeakAt, "preparation") }) {
		return nil
	}
	return []string{fmt.Sprintf("the peak is before the first step: FSDP2 prepares a model of %v on the GPU, if your script builds it there; if it loads on the CPU, plan with --built-on cpu", costmodel.Bytes(table.Prepared))}
}

// loadingNotes names the GPU with the least free memory during the conversion of stored weights.
func loadingNotes(table *costmodel.Table, placed Map, devices []Prediction) []string {
	most := make([]int64, len(devices))
	for unit, at := range placed {
		if at >= 0 && int(at) < len(most) {
			most[at] = max(most[at], table.Units[unit].Loading)
		}
	}
	worst, least := -1, int64(math.MaxInt64)
	for i := range devices {
		predicted := &devices[i].Predicted
		if left := devices[i].Budget - predicted.ParamsBytes - predicted.OverheadBytes - most[i]; most[i] > 0 && left < least {
			worst, least = i, left
		}
	}
	if worst < 0 {
		return nil
	}
	device := &devices[worst]
	note := fmt.Sprintf("loading: GPU %d holds up to %v at once, its weights (%v) and %v to convert the largest", device.Device,
		costmodel.Bytes(device.Predicted.ParamsBytes+most[worst]), costmodel.Bytes(device.Predicted.ParamsBytes), costmodel.Bytes(most[worst]))
	if least < 0 {
		note += fmt.Sprintf(", and lacks %v: Transformers then converts mxfp4 in host memory, and others run out of memory; a checkpoint saved once in bf16 avoids both", costmodel.Bytes(-least))
	}
	return []string{note}
}
