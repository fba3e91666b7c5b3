package ask

import (
	"slices"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Setting takes workload and devices from a plan, each flag that is given over
// it; without a plan from the flags alone, on as many devices as the map names.
func (r *Request) Setting(plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	w, err := r.Workload()
	if err != nil {
		return w, nil, err
	}
	count := 1
	for _, e := range flat {
		count = max(count, min(int(e.Device)+1, costmodel.MaxDevices))
	}
	if plan != nil {
		w = r.over(plan.Workload)
		count = len(plan.Topology.Devices)
	}
	if plan == nil || r.Given("gpus", "gpu", "topology") {
		topo, err := r.devices(w.Mode, count)
		return w, topo, err
	}
	topo := plan.Topology
	topo.Devices = slices.Clone(topo.Devices)
	if err := r.setAside(&topo); err != nil {
		return w, nil, err
	}
	if err := topo.Check(); err != nil {
		return w, nil, out.Usagef("the GPUs of the plan: %w", err)
	}
	return w, &topo, nil
}

// over lays the flags that were given over a plan's workload. What follows such
// a flag is open again, unless it was given too.
func (r *Request) over(planned costmodel.Workload) costmodel.Workload {
	w := planned
	var none costmodel.Workload
	for i := range flags {
		if !r.Given(flags[i].name) {
			continue
		}
		for _, name := range flags[i].reopens {
			flagNamed(name).field.Copy(&w, &none)
		}
	}
	for i := range flags {
		if f := &flags[i]; f.field != nil && r.Given(f.name) {
			f.field.Copy(&w, &r.work)
		}
	}
	return w
}
