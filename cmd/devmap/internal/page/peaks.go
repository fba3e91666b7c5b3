package page

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// gpusOf are the GPUs of predictions.
func gpusOf(plan *devicemap.Plan, devices []devicemap.Prediction) []gpu {
	out := make([]gpu, len(devices))
	for i := range devices {
		device := &devices[i]
		predicted := &device.Predicted
		out[i] = gpu{
			Device: device.Device, CapacityBytes: device.CapacityBytes, ReservedBytes: device.ReservedBytes, BudgetBytes: device.CapacityBytes - device.ReservedBytes,
			Bytes: predictedBytes(predicted), PeakBytes: predicted.PeakAllocatedBytes, PeakAt: predicted.PeakAt,
			PeakRangeBytes: predicted.PeakRangeBytes, UsualPeakBytes: predicted.UsualPeakBytes, AtLeast: predicted.AtLeast, HostBytes: predicted.HostBytes, OverheadBytes: predicted.OverheadBytes,
			SlackBytes: predicted.SlackBytes, UsedBytes: predicted.DeviceUsedBytes, HeadroomBytes: device.HeadroomBytes, Verdict: device.Verdict,
		}
		if i < len(plan.Topology.Devices) {
			out[i].Name = plan.Topology.Devices[i].Name
		}
	}
	return out
}

// unfollowed adds a curve of the peak alone to every GPU that has none.
func (page *Page) unfollowed(devices []devicemap.Prediction) {
	type peak struct {
		bytes  sizes
		at     string
		budget int64
	}
	var kinds []peak
	var of [][]int
	for device := range devices {
		if page.GPUs[device].Memory != nil || devices[device].Predicted.PeakAllocatedBytes == 0 {
			continue
		}
		one := peak{predictedBytes(&devices[device].Predicted), devices[device].Predicted.PeakAt, devices[device].Budget}
		at := slices.Index(kinds, one)
		if at < 0 {
			at = len(kinds)
			kinds, of = append(kinds, one), append(of, nil)
		}
		of[at] = append(of[at], device)
	}
	for i, kind := range kinds {
		one := page.ofSamples([]sample{{0, kind.at, kind.bytes, kind.bytes.total()}}, 0, 1)
		one.Axis, one.Note = "order", "The peak alone is known, not the moments before and after it."
		one.Live = page.alive([]holding{{owner: "everything on the GPU", bytes: kind.bytes}}, categoryCount)
		page.add(one, of[i], devices)
	}
}

// ofPhases adds the phases of a diffusion pipeline: a curve has a point for each.
func (page *Page) ofPhases(plan *devicemap.Plan) {
	for i := range plan.Phases {
		of := &plan.Phases[i]
		page.Phases = append(page.Phases, phase{of.Name, of.Component, of.Seconds, gpusOf(plan, of.Devices)})
	}
	type kind struct {
		samples []sample
		budget  int64
	}
	var kinds []kind
	var on [][]int
	for device := range plan.Devices {
		one := kind{budget: plan.Devices[device].Budget}
		for i := range plan.Phases {
			bytes := predictedBytes(&plan.Phases[i].Devices[device].Predicted)
			one.samples = append(one.samples, sample{int64(i), fmt.Sprintf("%s: %s", plan.Phases[i].Name, plan.Phases[i].Component), bytes, bytes.total()})
		}
		at := slices.IndexFunc(kinds, func(other kind) bool { return other.budget == one.budget && slices.Equal(other.samples, one.samples) })
		if at < 0 {
			at = len(kinds)
			kinds, on = append(kinds, one), append(on, nil)
		}
		on[at] = append(on[at], device)
	}
	for i, kind := range kinds {
		peak := 0
		for at := range kind.samples {
			if kind.samples[at].total > kind.samples[peak].total {
				peak = at
			}
		}
		one := page.ofSamples(kind.samples, peak, share(maxPoints, len(kinds), fewPoints, manyPoints))
		one.Axis, one.Note = "order", "Each point is the peak of a phase."
		component := plan.Phases[peak].Component
		one.Live = page.alive([]holding{{owner: component, bytes: kind.samples[peak].bytes}}, categoryCount)
		page.add(one, on[i], plan.Devices)
	}
}
