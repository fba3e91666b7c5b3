package costmodel

import (
	"errors"
	"fmt"
)

// Topology is the devices and the links between them.
type Topology struct {
	Devices []Device
	Links   []Link
	// HostMemoryBytes is what offloaded units may take of the host's memory; 0: no bound is known.
	HostMemoryBytes int64
	// Starts are the first GPU of each device, if devices are stages of several GPUs
	// ([Table.Folded]); nil: each device is a GPU.
	Starts []int
}

// Device is one GPU.
type Device struct {
	Name string `json:"name"`
	// CapacityBytes is all its memory; ReservedBytes is the part for others, the driver, or kept
	// free.
	CapacityBytes int64 `json:"capacity_bytes"`
	ReservedBytes int64 `json:"reserved_bytes"`
	// WorkspaceBytes is one cuBLAS workspace, ContextBytes the context with loaded kernels.
	WorkspaceBytes int64 `json:"workspace_bytes"`
	ContextBytes   int64 `json:"context_bytes"`
	// FLOPS is the rate of 16-bit matrix products, in FLOP/s; 0: unknown.
	FLOPS float64 `json:"flops,omitzero"`
	// Rates are the others; 0: unknown, and what needs them counts nothing.
	Rates
	// Slack is the least and most that the allocator's pool reserves above a peak, as a fraction of it.
	Slack [2]float64 `json:"slack,omitzero"`
	// ComputeCapability is NVIDIA's, as "9.0"; empty: unknown.
	ComputeCapability string `json:"compute_capability,omitzero"`
	// Host names the machine that the device is in; empty: all are in one.
	Host string `json:"host,omitzero"`
	// GPU is the UUID of the measured GPU. Devices of one GPU are parts of it: ContextBytes is each
	// one's part of a process's memory outside its own. Empty: nothing was measured.
	GPU string `json:"gpu,omitzero"`
	// Tensor and Data are the rings of a stage of several GPUs ([Table.Folded]): of GPUs that share
	// matrices, and of replicas.
	Tensor ring `json:"-"`
	Data   ring `json:"-"`
	// Context and Expert are the rings of GPUs that share a sequence's tokens, and experts.
	Context ring `json:"-"`
	Expert  ring `json:"-"`
	// Own is what was measured there of devmap's own engine.
	Own own `json:"devmap,omitzero"`
}

// Budget is the memory budget of a device: its capacity less the reserved bytes.
func (device *Device) Budget() int64 { return device.CapacityBytes - device.ReservedBytes }

// Link joins two devices.
type Link struct {
	From           int     `json:"from"`
	To             int     `json:"to"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	LatencySeconds float64 `json:"latency_seconds"`
}

// maxCapacity and MaxDevices bound a topology so that sums stay in an int64.
const maxCapacity = 1 << 50

// MaxDevices bounds a topology.
const MaxDevices = 4096

// Check reports a topology on which nothing can be placed.
func (topology *Topology) Check() error {
	if len(topology.Devices) == 0 || len(topology.Devices) > MaxDevices {
		return fmt.Errorf("devices: %d devices, not 1 to %d", len(topology.Devices), MaxDevices)
	}
	if topology.HostMemoryBytes < 0 {
		return fmt.Errorf("host_memory_bytes: %d is negative", topology.HostMemoryBytes)
	}
	for i := range topology.Devices {
		if i > 0 { // most are like the one before
			before := topology.Devices[i-1]
			before.Host = topology.Devices[i].Host
			if before == topology.Devices[i] {
				continue
			}
		}
		if err := topology.Devices[i].check(); err != nil {
			return fmt.Errorf("devices[%d]: %w", i, err)
		}
	}
	for i := range topology.Links {
		if err := topology.Links[i].check(len(topology.Devices)); err != nil {
			return fmt.Errorf("links[%d]: %w", i, err)
		}
	}
	return nil
}

func (device *Device) check() error {
	switch {
	case device.CapacityBytes <= 0:
		return fmt.Errorf("a capacity of %d bytes holds nothing", device.CapacityBytes)
	case min(device.ReservedBytes, device.WorkspaceBytes, device.ContextBytes) < 0:
		return fmt.Errorf("a negative size (reserved %d, workspace %d, context %d bytes)", device.ReservedBytes, device.WorkspaceBytes, device.ContextBytes)
	case !within(device.FLOPS, 0, 1e21) || !within(device.Slack[0], 0, 100) || !within(device.Slack[1], device.Slack[0], 100):
		return fmt.Errorf("flops %v or slack %v makes no sense", device.FLOPS, device.Slack)
	case max(device.WorkspaceBytes, device.ContextBytes) > maxCapacity:
		return errors.New("a workspace or context of more than 2^50 bytes")
	case device.CapacityBytes > maxCapacity:
		return fmt.Errorf("a capacity of %d bytes is more than 2^50", device.CapacityBytes)
	case device.Budget() <= 0:
		return fmt.Errorf("%v of %v is reserved: nothing is left", Bytes(device.ReservedBytes), Bytes(device.CapacityBytes))
	}
	if err := device.Own.check(); err != nil {
		return err
	}
	return device.Rates.check()
}

// within is false for NaN.
func within(value, low, high float64) bool { return value >= low && value < high }

func (link *Link) check(devices int) error {
	if min(link.From, link.To) < 0 || max(link.From, link.To) >= devices || link.From == link.To {
		return fmt.Errorf("from %d to %d is no link between two of the %d devices", link.From, link.To, devices)
	}
	if link.BytesPerSecond == 0 || !within(link.BytesPerSecond, 0, 1e18) || !within(link.LatencySeconds, 0, 1e9) {
		return fmt.Errorf("%v bytes/s with %v s latency is no link", link.BytesPerSecond, link.LatencySeconds)
	}
	return nil
}
