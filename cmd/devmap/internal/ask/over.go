package ask

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Setting takes workload and devices from a plan, each flag that is given over
// it; without a plan from the flags alone, on as many devices as the map names.
func (request *Request) Setting(plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	workload, err := request.Workload()
	if err != nil {
		return workload, nil, err
	}
	count := 1
	for _, entry := range flat {
		count = max(count, min(int(entry.Device)+1, costmodel.MaxDevices))
	}
	if plan != nil {
		workload = request.over(plan.Workload)
		if request.Given("preset") { // its sizes and types are the plan's
			ofPlan := func(field string) bool {
				return field != "loss_only" && field != "built_on" || request.Given(strings.ReplaceAll(field, "_", "-"))
			}
			if request.presetNotes, err = applyPreset(&workload, ofPlan); err != nil {
				return workload, nil, err
			}
		}
		count = len(plan.Topology.Devices)
	}
	if plan == nil || request.Given("gpus", "gpu", "topology") {
		topo, err := request.devices(workload.Mode, count)
		return workload, topo, err
	}
	topo := plan.Topology
	topo.Devices = slices.Clone(topo.Devices)
	if err := request.setAside(&topo); err != nil {
		return workload, nil, err
	}
	if err := topo.Check(); err != nil {
		return workload, nil, out.Usagef("the GPUs of the plan: %w", err)
	}
	return workload, &topo, nil
}

// over lays the flags that were given over a plan's workload. What follows such
// a flag is open again, unless it was given too.
func (request *Request) over(planned costmodel.Workload) costmodel.Workload {
	workload := planned
	var none costmodel.Workload
	for i := range flags {
		if !request.Given(flags[i].name) {
			continue
		}
		for _, name := range flags[i].reopens {
			flagNamed(name).field.Copy(&workload, &none)
		}
	}
	for i := range flags {
		if f := &flags[i]; f.field != nil && request.Given(f.name) {
			f.field.Copy(&workload, &request.work)
		}
	}
	switch {
	case request.work.DeepSpeed != nil:
		workload.DeepSpeed = request.work.DeepSpeed
	case workload.Strategy != planned.Strategy:
		workload.DeepSpeed = nil // another strategy's
	}
	return workload
}
