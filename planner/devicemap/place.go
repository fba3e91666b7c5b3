package devicemap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// place finds each unit's device, and reports units that have none or more
// than one.
func (c *checker) place() {
	c.m = make(Map, len(c.g.Units))
	for u := range c.g.Units {
		c.m[u] = c.unit(u)
	}
}

func (c *checker) unit(u int) Device {
	unit := &c.g.Units[u]
	var on []Device
	var without []string
	needed := false
	each := func(path string, required bool) {
		if d, ok := c.deviceOf(path); ok {
			on = append(on, d)
			return
		}
		without = append(without, path)
		needed = needed || required
	}
	for i := unit.First; i < unit.End; i++ {
		l := &c.g.Layers[i]
		for j := range l.Params {
			each(modelgraph.FullName(l.Name, l.Params[j].Name), true)
		}
		for j := range l.Buffers {
			each(modelgraph.FullName(l.Name, l.Buffers[j].Name), false)
		}
		if len(l.Params)+len(l.Buffers) == 0 {
			each(l.Name, l.Declared != nil)
		}
	}
	slices.Sort(on)
	on = slices.Compact(on)
	switch {
	case len(without) > 0 && needed:
		c.fault(noDevice, c.missing(unit, without, len(on) > 0), "no key of the map covers it")
		return Nowhere
	case slices.Contains(on, Nowhere): // its key has a fault of its own
		return Nowhere
	case len(on) > 1:
		c.fault(splitUnit, unit.Name, "it is split over devices %s; its class must stay on one device", names(on))
		return Nowhere
	case len(on) == 0: // only buffers: engines run it where its input is
		c.warnings = append(c.warnings, fmt.Sprintf("%s holds only buffers and has no device: it runs on device 0", unit.Name))
		return 0
	}
	return on[0]
}

// missing names what has no device: the unit, or the parameter where the
// rest of the unit has one.
func (c *checker) missing(unit *modelgraph.Unit, without []string, partly bool) string {
	if partly || len(unit.Keys) > 1 {
		return without[0]
	}
	return unit.Keys[0]
}

// tiers reports units below the GPUs where no engine runs them from there.
func (c *checker) tiers(strategy costmodel.Strategy, mode costmodel.Mode) {
	for u, d := range c.m {
		switch name := c.g.Units[u].Name; {
		case d != CPU && d != Disk:
		case mode == costmodel.Train:
			c.fault(offloadInTraining, name, "it is on the %v: Accelerate's hooks drop offloaded weights after forward, and backward needs them (%v works)", d, costmodel.Set("mode", costmodel.Infer))
		case strategy.Traits().Staged:
			c.fault(unknownDevice, name, "it is on the %v: a stage of a pipeline runs on a GPU", d)
		}
	}
}

// ties reports tie groups on more than one device.
func (c *checker) ties() {
	for _, units := range c.g.TiedUnits() {
		var on []Device
		var where []string
		for _, u := range units {
			if c.m[u] == Nowhere {
				continue
			}
			on = append(on, c.m[u])
			where = append(where, fmt.Sprintf("%q on %v", c.g.Units[u].Name, c.m[u]))
		}
		slices.Sort(on)
		if len(slices.Compact(on)) > 1 {
			c.fault(tiesApart, c.g.Units[units[0]].Name, "units that share a parameter are apart: %s; the copies would train apart and take twice the memory", strings.Join(where, ", "))
		}
	}
}

func names(ds []Device) string {
	s := make([]string, len(ds))
	for i, d := range ds {
		s[i] = d.String()
	}
	return strings.Join(s, ", ")
}

// pipeline reports maps that the schedule cannot run: one stage a device
// unless interleaved, then chunk c on device c mod p (torch 2.11,
// distributed/pipelining/schedules.py: PipelineScheduleSingle takes a stage,
// generate_stage_to_rank_mapping loops).
func (c *checker) pipeline(g *modelgraph.Graph, p *pipeline, train bool) {
	for s := range p.stages {
		first := p.of[p.device[s]][0]
		module := g.Units[p.opens[s]].Name
		switch {
		case p.schedule.Kind != costmodel.Interleaved && first != s:
			c.fault(splitUnit, module, "it begins a second run on device %d; %s takes one stage a device (%v takes several)", p.device[s], p.schedule.Kind, costmodel.Set("schedule", costmodel.Interleaved))
		case p.schedule.Kind == costmodel.Interleaved && p.device[s] != p.device[s%int(p.schedule.Stages)]:
			c.fault(splitUnit, module, "stage %d is on device %d; interleaved stages go round the devices, so that it belongs on device %d", s, p.device[s], p.device[s%int(p.schedule.Stages)])
		}
	}
	if err := p.schedule.Check(); err != nil && (train || p.schedule.Kind == costmodel.Interleaved) {
		c.warnings = append(c.warnings, fmt.Sprintf("the engine refuses this: %v", err))
	}
}
