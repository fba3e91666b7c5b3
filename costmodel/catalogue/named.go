package catalogue

import (
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// Named returns the topology with the catalogue's GPU for each device with a name and no capacity. It
// keeps such a device's host and reserved bytes. Errors are those of [Find] and of the topology's Check.
func Named(topology *costmodel.Topology, mode costmodel.Mode) (*costmodel.Topology, error) {
	open := func(device costmodel.Device) bool { return device.Name != "" && device.CapacityBytes == 0 }
	if !slices.ContainsFunc(topology.Devices, open) {
		err := topology.Check()
		return topology, err
	}
	out := *topology
	out.Devices = slices.Clone(topology.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		if !open(*device) {
			continue
		}
		gpu, err := Find(device.Name)
		if err != nil {
			return nil, fmt.Errorf("GPU %d: %w; or give its capacity", i, err)
		}
		host, reserved := device.Host, device.ReservedBytes
		*device = gpu.Device(mode)
		device.Host, device.ReservedBytes = host, device.ReservedBytes+reserved
	}
	return &out, out.Check()
}

// WithCopies returns the topology with the catalogue's rate of copies between host and device for
// devices without a measured one. The error names a device whose rate is not known.
func WithCopies(topology *costmodel.Topology) (*costmodel.Topology, error) {
	out := *topology
	out.Devices = slices.Clone(topology.Devices)
	for i := range out.Devices {
		device := &out.Devices[i]
		if down, up := device.Copies(); down > 0 && up > 0 {
			continue
		}
		gpu, err := Find(device.Name)
		if err != nil || gpu.PinnedBytesPerSecond == 0 {
			return nil, fmt.Errorf("GPU %d (%q) copies to the host at an unknown rate: devmap probe measures it, or --topology FILE gives pinned_bytes_per_second", i, device.Name)
		}
		device.PinnedBytesPerSecond = gpu.PinnedBytesPerSecond
	}
	return &out, nil
}
