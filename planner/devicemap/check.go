package devicemap

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Report is what a check worked out: as much as the map allows.
type Report struct {
	Map       Map // Nowhere where a unit has no single device
	Devices   []Prediction
	Imbalance float64
	Faults    []Fault
	Warnings  []string
}

// Check judges any flat device map for a model, a table of its costs and the
// devices. It reports all faults at once; faults are those of reading, to
// which the others are added.
func Check(g *modelgraph.Graph, t *costmodel.Table, topo *costmodel.Topology, flat Flat, faults []Fault) *Report {
	c := checker{g: g, index: newIndex(g), entries: make(map[string]Device, len(flat)), devices: len(topo.Devices)}
	c.faults = slices.Clone(faults)
	c.keys(flat)
	c.overlaps(flat)
	c.place()
	c.tiers(t.Workload.Strategy, t.Workload.Mode)
	switch strategy := t.Workload.Strategy; {
	case strategy.Traits().Staged: // a tied parameter has a copy on each stage
		c.pipeline(g, stagesOf(t, c.m, len(topo.Devices)), t.Workload.Mode == costmodel.Train)
	case mapped(strategy):
		c.ties()
	default:
		c.fault(unknownEngine, "", "strategy %q runs no device map", strategy)
	}
	r := &Report{Map: c.m, Devices: Predict(t, topo, c.m), Warnings: c.warnings}
	r.Imbalance = Imbalance(r.Devices)
	c.fit(r.Devices)
	r.Faults = c.faults
	return r
}

// CheckReplicas judges devices on which every GPU runs the whole model
// ([costmodel.Traits]): there is no map, and all that can be
// wrong is that it does not fit. A strategy that has no replicas is an error.
func CheckReplicas(t *costmodel.Table, topo *costmodel.Topology) (*Report, error) {
	var c checker
	devices, err := PredictReplicas(t, topo)
	if err != nil {
		return nil, err
	}
	r := &Report{Devices: devices}
	r.Imbalance = Imbalance(r.Devices)
	c.fit(r.Devices)
	r.Faults, r.Warnings = c.faults, c.warnings
	return r, nil
}

// CheckMap is [Check] of a map by unit: the re-check of a solver's answer.
func CheckMap(g *modelgraph.Graph, t *costmodel.Table, topo *costmodel.Topology, m Map) *Report {
	return Check(g, t, topo, m.Flatten(g), nil)
}

type checker struct {
	g        *modelgraph.Graph
	index    *index
	entries  map[string]Device
	devices  int
	m        Map
	faults   []Fault
	warnings []string
}

func (c *checker) fault(kind string, module, format string, args ...any) {
	c.faults = append(c.faults, Fault{Kind: kind, Module: module, Message: costmodel.Messagef(format, args...)})
}

// keys takes the entries in, and reports those that name no module or a
// device outside the topology.
func (c *checker) keys(flat Flat) {
	const mostNearest = 1000
	unknown := 0
	for _, e := range flat {
		c.entries[e.Key] = e.Device
		if !c.index.real(e.Key) {
			f := Fault{Kind: unknownModule, Module: e.Key, Message: costmodel.Messagef("the model has no such module")}
			unknown++
			if unknown <= mostNearest { // each is compared with every module
				f.Nearest = c.index.nearest(e.Key)
			}
			c.faults = append(c.faults, f)
		}
		if int(e.Device) >= c.devices {
			c.fault(unknownDevice, e.Key, "device %d is not among the %d devices (0 to %d)", e.Device, c.devices, c.devices-1)
		}
	}
}

// overlaps reports keys inside other keys: an engine that expands the map
// lets the later one win.
func (c *checker) overlaps(flat Flat) {
	for _, e := range flat {
		for outer := range ancestors(e.Key) {
			if d, ok := c.entries[outer]; ok {
				c.fault(overlap, e.Key, "it lies inside %q, which has %s in the map; keep one of the two", outer, placed(d))
			}
		}
	}
}

func placed(d Device) string {
	if d == Nowhere {
		return "no valid device"
	}
	return "device " + d.String()
}

// deviceOf is the device of a tensor or module: its own key or the nearest
// module's around it.
func (c *checker) deviceOf(path string) (Device, bool) {
	if d, ok := c.entries[path]; ok {
		return d, true
	}
	for outer := range ancestors(path) {
		if d, ok := c.entries[outer]; ok {
			return d, true
		}
	}
	return Nowhere, false
}

// fit reports devices that would hold more than their budget.
func (c *checker) fit(ps []Prediction) {
	for i := range ps {
		p := &ps[i]
		name := fmt.Sprintf("device %d", p.Device)
		switch need := p.Predicted.PeakAllocatedBytes + p.Predicted.OverheadBytes; {
		case p.HeadroomBytes < 0:
			c.fault(DoesNotFit, name, "it would hold %v at its peak (%s), %v more than its budget of %v",
				costmodel.Bytes(need), p.Predicted.PeakAt, costmodel.Bytes(-p.HeadroomBytes), costmodel.Bytes(p.Budget()))
		case p.HeadroomBytes < p.Predicted.SlackBytes[1]:
			c.warnings = append(c.warnings, fmt.Sprintf("%s: it fits with %v to spare, but the allocator's pool may take up to %v beyond the peak",
				name, costmodel.Bytes(p.HeadroomBytes), costmodel.Bytes(p.Predicted.SlackBytes[1])))
		}
	}
}
