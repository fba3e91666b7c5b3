package estimate

import (
	"fmt"

	"github.com/devmap-dev/devmap/costmodel"
)

// strayContext is what one more process's context holds on a GPU before it
// runs a kernel there: 3 of them held 1577 MiB on an H200 (NVML,
// fixtures/measured/seeds.json, gpu0_map_location_none, after del and
// empty_cache; torch 2.11, driver 580). Measured.
const strayContext = (1577<<20 + 2) / 3

// CheckpointOnGPU0 is what GPU 0 gains when every rank loads a checkpoint that
// was saved from it, with torch.load and no map_location: tensors go back to
// the device in their storage's tag (torch/serialization.py,
// default_restore_location), so that each rank, rank 0 too, has a copy on
// cuda:0, and each of the others a context there.
func CheckpointOnGPU0(ranks, checkpoint int64) int64 {
	return ranks*checkpoint + (ranks-1)*strayContext
}

// warnGPU0 applies where every rank loads the whole model.
func (e *estimator) warnGPU0() {
	if ranks := e.w.World; e.w.Strategy.Traits().Replicated && ranks > 1 {
		size := e.g.ParamBytes()
		e.warnings = append(e.warnings, fmt.Sprintf(
			"a checkpoint saved from cuda:0 that all %d ranks load without map_location puts %v on GPU 0 (%d copies of %v, %d more contexts): pass map_location=\"cpu\"",
			ranks, costmodel.Bytes(CheckpointOnGPU0(ranks, size)), ranks, costmodel.Bytes(size), ranks-1))
	}
}
