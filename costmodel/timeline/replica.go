package timeline

import "github.com/devmap-dev/devmap/costmodel"

// ResidentOn is what device d holds besides its units. The input's device gets
// the outputs even where it holds no unit: the caller put the input there.
func ResidentOn(t *costmodel.Table, d int, dev *costmodel.Device, idle bool) Resident {
	var k Resident
	if t.Workload.Mode == costmodel.Load {
		return k
	}
	if !idle {
		k.Workspace = t.Workspaces * dev.WorkspaceBytes
	}
	k.Buckets, k.LastGradients = t.Buckets, t.LastGradients
	if d == t.InputDevice {
		k.Output, k.OutputDropped = t.OutputBytes, t.OutputsDropped
	}
	return k
}

// Replica is the peak of one GPU that runs the whole model on its own data
// ([costmodel.Traits]).
func Replica(t *costmodel.Table, dev *costmodel.Device) Peak {
	units := make([]*costmodel.Unit, len(t.Units))
	for i := range units {
		units[i] = &t.Units[i]
	}
	kept := ResidentOn(t, t.InputDevice, dev, false)
	if len(t.Groups) > 0 {
		return sharded(t, units, kept)
	}
	return Walk(t.Workload.Mode, units, kept)
}
