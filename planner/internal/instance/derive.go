package instance

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Within returns the instance with other caps. It shares the resolved data.
func (in *Instance) Within(caps []int64) *Instance {
	out := *in
	out.Caps = caps
	return &out
}

// For returns the instance with another objective. It shares the resolved data.
func (in *Instance) For(objective Objective) *Instance {
	out := *in
	out.Objective = objective
	return &out
}

// InOrder returns the instance with units in the model's order.
func (in *Instance) InOrder() *Instance {
	out := *in
	out.AnyAssignment = false
	return out.sealed()
}

// Only returns the instance with some of its constraints. Their numbers count pins, then
// together-groups.
func (in *Instance) Only(which []int) *Instance {
	out := *in
	out.Pins, out.Together = nil, nil
	for _, i := range which {
		if i < len(in.Pins) {
			out.Pins = append(out.Pins, in.Pins[i])
		} else {
			out.Together = append(out.Together, in.Together[i-len(in.Pins)])
		}
	}
	return out.sealed()
}

// On returns an instance without pins on other devices.
func (in *Instance) On(devices []costmodel.Device) *Instance {
	out := *in
	out.Topology = &costmodel.Topology{Devices: devices, Links: in.Topology.Links}
	out.Caps = out.CapsAt(1)
	return out.sealed()
}

// First returns the instance on its first devices; nil if a unit is pinned to a later device.
func (in *Instance) First(devices int) *Instance {
	if devices == 0 || slices.ContainsFunc(in.Pins, func(pin Pinned) bool { return pin.Device >= devices }) {
		return nil
	}
	out := *in
	out.Topology = &costmodel.Topology{Devices: in.Topology.Devices[:devices]}
	for _, link := range in.Topology.Links {
		if max(link.From, link.To) < devices {
			out.Topology.Links = append(out.Topology.Links, link)
		}
	}
	out.Caps = in.Caps[:devices]
	return out.sealed()
}

// Without returns the instance after units have left the devices.
func (in *Instance) Without(units []int) *Instance {
	out, table := *in, *in.Costs
	table.Units = slices.Clone(table.Units)
	for _, unit := range units {
		table.Units[unit] = table.Units[unit].Streamed()
	}
	out.Costs, out.Offloaded, out.Offload = &table, slices.Sorted(slices.Values(units)), ""
	return out.sealed()
}

// Permuted returns the instance with device order[d] as device d. The number is also the device's
// rank, which determines the communication library's memory.
func (in *Instance) Permuted(order []int) *Instance {
	out, at := *in, make([]int, len(order))
	topo := &costmodel.Topology{}
	out.Caps = make([]int64, len(order))
	for device, old := range order {
		topo.Devices = append(topo.Devices, in.Topology.Devices[old])
		out.Caps[device], at[old] = in.Caps[old], device
	}
	for _, link := range in.Topology.Links {
		link.From, link.To = at[link.From], at[link.To]
		topo.Links = append(topo.Links, link)
	}
	out.Topology = topo
	out.Pins = slices.Clone(in.Pins)
	for i := range out.Pins {
		out.Pins[i].Device = at[out.Pins[i].Device]
	}
	return out.sealed()
}

// Restored converts a map of a permuted instance to the original devices.
func Restored(placed devicemap.Map, order []int) devicemap.Map {
	out := slices.Clone(placed)
	for unit, device := range out {
		if device >= 0 {
			out[unit] = devicemap.Device(order[device])
		}
	}
	return out
}

// Relaxed returns the instance whose devices all have the largest budget and the largest cap. Its
// step is a lower bound for every order of the devices. It returns nil if devices differ in more
// than memory.
func (in *Instance) Relaxed() *Instance {
	out, table := *in, *in.Costs
	best := in.Topology.Devices[0]
	for i, device := range in.Topology.Devices {
		if table.Comm.Contexts != nil { // the measured context of each device
			device.ContextBytes = in.Costs.Overhead(i, &device)
		}
		if i == 0 {
			best = device
		}
		if own := device.Own; i > 0 {
			if own.ContextBytes = best.Own.ContextBytes; own != best.Own {
				return nil
			}
		}
		if device.Rates != best.Rates || device.FLOPS != best.FLOPS || device.Host != best.Host || len(in.Topology.Links) > 0 {
			return nil
		}
		best.CapacityBytes, best.ReservedBytes = max(best.Budget(), device.Budget()), 0
		best.ContextBytes, best.WorkspaceBytes = min(best.ContextBytes, device.ContextBytes), min(best.WorkspaceBytes, device.WorkspaceBytes)
		best.Own.ContextBytes = min(best.Own.ContextBytes, device.Own.ContextBytes)
	}
	table.Comm.Contexts = nil
	table.OutputBytes, table.LossBytes = 0, 0 // any device in the order may be the input's device
	out.Costs, out.Pins = &table, nil
	out.Topology = &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{best}, len(in.Topology.Devices))}
	out.Caps = slices.Repeat([]int64{slices.Max(in.Caps)}, len(in.Caps))
	return out.sealed()
}
