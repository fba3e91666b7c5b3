package devicemap

import (
	"fmt"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// consistent reports a plan that contradicts itself, as one that was edited or
// cut may; what its map is for its model is [Check]'s.
func (p *Plan) consistent(file string) error {
	fault := func(place, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: place, Msg: fmt.Sprintf(format, args...)}
	}
	if field, msg := p.Workload.Fault(); field != "" {
		return fault("workload."+field, "%s", msg)
	}
	n := len(p.Topology.Devices)
	if w := p.Workload.World; w > 0 && w != int64(n) {
		return fault("workload.world", "%d, and the topology has %s", w, devices(n))
	}
	if len(p.Devices) > 0 && len(p.Devices) != n {
		return fault("devices", "%s, and the topology has %d", devices(len(p.Devices)), n)
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		place := "devices[" + strconv.Itoa(i) + "]"
		if d.Device != i {
			return fault(place+".device", "%d is not %d, its place", d.Device, i)
		}
		m := &d.Predicted
		sum := m.ParamsBytes + m.GradsBytes + m.OptimizerStateBytes + m.ActivationsBytes + m.KVCacheBytes + m.WorkspaceBytes + m.CommBuffersBytes
		if sum != m.PeakAllocatedBytes {
			return fault(place+".predicted.peak_allocated_bytes", "%d, and the parts add up to %d", m.PeakAllocatedBytes, sum)
		}
		if left := d.Budget() - m.PeakAllocatedBytes - m.OverheadBytes; left != d.HeadroomBytes {
			return fault(place+".headroom_bytes", "%d, and capacity less reserved, peak and overhead is %d", d.HeadroomBytes, left)
		}
	}
	return nil
}

// placeable reports a map with which nothing can be placed: a device that the
// plan does not have, or a module inside another that has its own device.
func (p *Plan) placeable(file string) error {
	fault := func(key, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file, Place: "device_map." + strconv.Quote(key), Msg: fmt.Sprintf(format, args...)}
	}
	n := len(p.Topology.Devices)
	entries := make(map[string]Device, len(p.DeviceMap))
	for _, e := range p.DeviceMap {
		if int(e.Device) >= n {
			return fault(e.Key, "device %d is not among the %s of the plan's topology (0 to %d)", e.Device, devices(n), n-1)
		}
		entries[e.Key] = e.Device
	}
	for _, e := range p.DeviceMap {
		for outer := range ancestors(e.Key) {
			if _, ok := entries[outer]; ok {
				return fault(e.Key, "it lies inside %q, which has a device of its own", outer)
			}
		}
	}
	for i, s := range p.Stages {
		if int(s.Device) >= n {
			return &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("stages[%d].device", i), Msg: fmt.Sprintf("device %d is not among the %s of the plan's topology", s.Device, devices(n))}
		}
	}
	return nil
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}
