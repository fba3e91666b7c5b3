package bind

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// Region is a range of an arena, [First, End), whose buffers have the same lifetime.
type Region struct {
	Name       string
	First, End int64
}

// Regions returns the regions of a device's arena from the bottom. They are the library's
// workspace, state that is held throughout, slots of channels, the stream with results, saved
// activations, and scratch. Where gradients grow into saved activations, scratch lies between them:
// these are one region, the stack. Only room that no buffer takes is
// between regions.
func (bound *Bound) Regions(device int) []Region {
	stacked := bound.training() && bound.parts() == 1 && !bound.Workload.Schedule.Split() && bound.Workload.OffloadActivations == ""
	var regions []Region
	for index := range bound.Program.Buffers {
		buffer := &bound.Program.Buffers[index]
		if int(buffer.Device) != device || buffer.Class == program.Host {
			continue
		}
		name := regionOf(buffer.Class, stacked)
		at := slices.IndexFunc(regions, func(region Region) bool { return region.Name == name })
		if at < 0 {
			at = len(regions)
			regions = append(regions, Region{Name: name, First: buffer.Offset})
		}
		regions[at].First = min(regions[at].First, buffer.Offset)
		regions[at].End = max(regions[at].End, buffer.Offset+buffer.Bytes)
	}
	slices.SortFunc(regions, func(one, other Region) int { return cmp.Compare(one.First, other.First) })
	return regions
}

func regionOf(class program.Class, stacked bool) string {
	switch class {
	case program.Workspace:
		return "workspace"
	case program.Slot:
		return "slots"
	case program.Stream, program.Result:
		return "stream"
	case program.Gradient, program.Saved, program.Scratch:
		if stacked {
			return "stack"
		}
	case program.Weight, program.Master, program.State, program.Cache, program.Feed, program.Host:
	}
	switch class {
	case program.Saved:
		return "saved"
	case program.Scratch:
		return "scratch"
	default:
		return "state"
	}
}
