package instance

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestRelaxed: without the model, the relaxed instance's devices use no more memory than
// any of the instance's. The figure may come from the device, a measurement, or the engine
// in place of the catalogue. There is no relaxed instance if measured rates differ.
func TestRelaxed(t *testing.T) {
	contexts := map[string][2]int64{"9.0": {800, 500}}
	hopper := costmodel.Device{CapacityBytes: 1 << 20, ContextBytes: 800, ComputeCapability: "9.0"}
	said, other := hopper, hopper
	said.ContextBytes, other.ContextBytes, other.ComputeCapability = 600, 700, "8.0"
	measured := hopper
	measured.Own.FLOPS, measured.Own.ContextBytes = 1e15, 400
	faster := measured
	faster.Own.FLOPS = 2e15
	light := measured
	light.Own.ContextBytes = 300
	for name, devices := range map[string][]costmodel.Device{
		"one kind": {hopper, hopper}, "said later": {hopper, said}, "said first": {said, hopper}, "another kind": {other, hopper}, "measured": {measured, light}, "measured first": {light, measured},
	} {
		in := &Instance{Caps: []int64{1, 1}}
		in.Costs = &costmodel.Table{Workload: costmodel.Workload{Runtime: costmodel.Devmap}, Comm: costmodel.Comm{Contexts: contexts}}
		in.Topology = &costmodel.Topology{Devices: devices}
		relaxed := in.Relaxed()
		least := min(in.Costs.Overhead(0, &devices[0]), in.Costs.Overhead(1, &devices[1]))
		for i := range devices {
			if got := relaxed.Costs.Overhead(i, &relaxed.Topology.Devices[i]); got != least {
				t.Errorf("%s: device %d holds %d, want %d", name, i, got, least)
			}
		}
	}
	in := &Instance{Caps: []int64{1, 1}}
	in.Costs, in.Topology = &costmodel.Table{}, &costmodel.Topology{Devices: []costmodel.Device{measured, faster}}
	if in.Relaxed() != nil {
		t.Error("rates that differ are relaxed")
	}
}
