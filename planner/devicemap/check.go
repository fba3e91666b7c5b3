package devicemap

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Report lists everything that a check found.
type Report struct {
	Map       Map // Nowhere for units without a single device
	Devices   []Prediction
	Verdict   Verdict // the worst verdict of the devices
	Imbalance float64
	Faults    []Fault
	Warnings  []string
}

// Check checks any flat device map against a model, a table of its costs and the devices. It
// reports all faults at once, after the faults found during reading (faults). If every GPU runs the
// whole model ([costmodel.Traits]) there is no map, and Check judges the devices only.
func Check(graph *modelgraph.Graph, table *costmodel.Table, topo *costmodel.Topology, flat Flat, faults []Fault) *Report {
	if table.Workload.Strategy.Traits().Replicated && len(flat)+len(faults) == 0 {
		return replicas(table, topo)
	}
	check := checker{graph: graph, index: newIndex(graph), entries: make(map[string]Device, len(flat)), devices: len(topo.Devices)}
	check.faults = slices.Clone(faults)
	check.keys(flat)
	check.overlaps(flat)
	check.place()
	check.tiers(&table.Workload)
	switch strategy := table.Workload.Strategy; {
	case strategy.Traits().Staged: // a tied parameter has a copy on each stage
		folded, starts := startsOf(table, topo)
		check.notFirst(starts)
		pipe := stagesOf(table, check.placement.onStages(starts), len(folded.Devices))
		pipe.starts = starts
		check.pipeline(graph, pipe, table.Workload.Mode == costmodel.Train)
	case mapped(strategy):
		check.ties(&table.Workload)
	default:
		check.fault(unknownEngine, "", "strategy %q runs no device map", strategy)
	}
	report := &Report{Map: check.placement, Devices: Predict(table, topo, check.placement)}
	check.hostFits(report.Devices, topo)
	check.judge(report, table)
	return report
}

// CheckServing is [Check] for an engine that serves. predict returns the devices of a map, or why the
// engine does not place units so.
func CheckServing(graph *modelgraph.Graph, devices int, flat Flat, faults []Fault, predict func(placed Map) ([]Prediction, *Fault)) *Report {
	check := checker{graph: graph, index: newIndex(graph), entries: make(map[string]Device, len(flat)), devices: devices}
	check.faults = slices.Clone(faults)
	check.keys(flat)
	check.overlaps(flat)
	check.place()
	report := &Report{Map: check.placement}
	if len(check.faults) == 0 {
		predicted, fault := predict(check.placement)
		if fault != nil {
			fault.Kind = notPlaced
			check.faults = append(check.faults, *fault)
		}
		report.Devices = predicted
	}
	report.Verdict, report.Imbalance = worst(report.Devices), imbalance(report.Devices)
	check.fit(report.Devices)
	report.Faults, report.Warnings = check.faults, check.warnings
	return report
}

// replicas judges devices if every GPU runs the whole model. Without a map, only the memory can be
// too small.
func replicas(table *costmodel.Table, topo *costmodel.Topology) *Report {
	var check checker
	devices, err := predictReplicas(table, topo, nil)
	if err != nil {
		check.fault(unknownEngine, "", "%v", err)
	}
	report := &Report{Devices: withUsual(devices, table, topo, nil)}
	check.judge(report, table)
	return report
}

type checker struct {
	graph     *modelgraph.Graph
	index     *index
	entries   map[string]Device
	devices   int
	placement Map
	faults    []Fault
	warnings  []string
}

// judge fills in the report's fields that follow from its devices.
func (check *checker) judge(report *Report, table *costmodel.Table) {
	report.Verdict, report.Imbalance = worst(report.Devices), imbalance(report.Devices)
	check.fit(report.Devices)
	report.Faults, report.Warnings = check.faults, slices.Concat(check.warnings, poolNotes(report.Devices, table.Workload.Runtime), bandNotes(table.Band, report.Devices), preparedNotes(table, report.Devices), loadingNotes(table, check.placement, report.Devices))
}

func (check *checker) fault(kind string, module, format string, args ...any) {
	check.faults = append(check.faults, Fault{Kind: kind, Module: module, Message: costmodel.Messagef(format, args...)})
}

// keys records the entries. It reports entries that name no module or no device of the topology.
func (check *checker) keys(flat Flat) {
	const maxNearest = 1000
	unknown := 0
	for _, entry := range flat {
		check.entries[entry.Key] = entry.Device
		if !check.index.real(entry.Key) {
			fault := Fault{Kind: unknownModule, Module: entry.Key, Message: costmodel.Messagef("the model has no such module")}
			unknown++
			if unknown <= maxNearest { // each nearest name takes a comparison with every module
				fault.Nearest = check.index.nearest(entry.Key)
			}
			check.faults = append(check.faults, fault)
		}
		if int(entry.Device) >= check.devices {
			check.fault(unknownDevice, entry.Key, "device %d is not among the %d devices (0 to %d)", entry.Device, check.devices, check.devices-1)
		}
	}
}

// overlaps reports keys inside other keys: an engine that expands the map uses the later one.
func (check *checker) overlaps(flat Flat) {
	for _, entry := range flat {
		for outer := range ancestors(entry.Key) {
			if device, ok := check.entries[outer]; ok {
				check.fault(overlap, entry.Key, "it lies inside %q, which has %s in the map; keep one of the two", outer, placed(device))
			}
		}
	}
}

func placed(device Device) string {
	if device == Nowhere {
		return "no valid device"
	}
	return "device " + device.String()
}

// deviceOf returns the device of a tensor or module: that of its own key, or of the nearest module
// around it.
func (check *checker) deviceOf(path string) (Device, bool) {
	if device, ok := check.entries[path]; ok {
		return device, true
	}
	for outer := range ancestors(path) {
		if device, ok := check.entries[outer]; ok {
			return device, true
		}
	}
	return Nowhere, false
}

// fit reports devices whose predicted memory exceeds their budget.
func (check *checker) fit(ps []Prediction) {
	for i := range ps {
		if prediction := &ps[i]; prediction.Verdict == tooLarge {
			p, context := &prediction.Predicted, ""
			if p.OverheadBytes > 0 {
				context = fmt.Sprintf(" with %v of CUDA context", costmodel.Bytes(p.OverheadBytes))
			}
			check.fault(doesNotFit, fmt.Sprintf("device %d", prediction.Device), "it would hold %v at its peak (%s)%s, %v more than its budget of %v",
				costmodel.Bytes(p.PeakAllocatedBytes+p.OverheadBytes), p.PeakAt, context, costmodel.Bytes(-prediction.HeadroomBytes), costmodel.Bytes(prediction.Budget))
		}
	}
}
