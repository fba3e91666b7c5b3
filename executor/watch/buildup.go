package watch

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// buildUp reports whether the first GPU has more memory in use than predicted and no other GPU
// does. Then processes for other GPUs begin there, or what they load lands there.
func (result *Report) buildUp() []string {
	if len(result.GPUs) < 2 {
		return nil
	}
	over := func(gpu *GPUReport) int64 { return gpu.PeakUsedBytes - gpu.PredictedUsedBytes[1] }
	first, most := &result.GPUs[0], over(&result.GPUs[1])
	elsewhere := result.GPUs[1].Processes
	for i := range result.GPUs[1:] {
		gpu := &result.GPUs[1+i]
		most = max(most, over(gpu))
		if elsewhere != nil && (gpu.Processes == nil || *gpu.Processes > *elsewhere) {
			elsewhere = gpu.Processes
		}
	}
	more := over(first) - max(0, most)
	if more <= allowed(first.PredictedUsedBytes[1]) {
		return nil
	}
	said := fmt.Sprintf("memory builds up on GPU %d: it held %v beyond its prediction, more than any other GPU", first.GPU, costmodel.Bytes(over(first)))
	if first.Processes != nil && elsewhere != nil && *first.Processes > *elsewhere {
		said += fmt.Sprintf("; %d processes of the command were on it, on each other GPU at most %d: those that are to be elsewhere have a context there (torch.cuda.set_device, CUDA_VISIBLE_DEVICES or map_location set before the first use of CUDA ends that)", *first.Processes, *elsewhere)
	}
	return []string{said}
}
