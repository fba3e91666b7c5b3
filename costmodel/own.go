package costmodel

import (
	"cmp"
	"fmt"
)

// own are measurements of devmap's own engine on a GPU ("devmap probe"). They replace those of
// [Device] when that engine runs; zero: not measured.
type own struct {
	// ContextBytes is a process's memory outside arenas: context, streams, kernels, libraries.
	// Arenas are in whole GranuleBytes.
	ContextBytes int64 `json:"context_bytes"`
	GranuleBytes int64 `json:"granule_bytes"`
	// FLOPS is the rate of 16-bit matrix products in FLOP/s; Rates are those of the engine's kernels.
	FLOPS float64 `json:"flops"`
	Rates
	// Copies are bytes/s of payload: inside the device, and between it and pinned memory of the host.
	DeviceCopyBytesPerSecond   float64 `json:"device_copy_bytes_per_second"`
	HostToDeviceBytesPerSecond float64 `json:"host_to_device_bytes_per_second"`
	DeviceToHostBytesPerSecond float64 `json:"device_to_host_bytes_per_second"`
}

// Copies are how fast a device copies to pinned memory of the host, and from it, in bytes a second: as
// measured, else as its kind does. 0: unknown.
func (device *Device) Copies() (down, up float64) {
	return cmp.Or(device.Own.DeviceToHostBytesPerSecond, device.PinnedBytesPerSecond), cmp.Or(device.Own.HostToDeviceBytesPerSecond, device.PinnedBytesPerSecond)
}

func (measured *own) check() error {
	if *measured == (own{}) {
		return nil
	}
	for _, rate := range []float64{measured.FLOPS, measured.DeviceCopyBytesPerSecond, measured.HostToDeviceBytesPerSecond, measured.DeviceToHostBytesPerSecond} {
		if rate == 0 || !within(rate, 0, 1e21) {
			return fmt.Errorf("devmap: a rate of %v is not between 0 and 1e21", rate)
		}
	}
	if measured.ContextBytes < 0 || measured.GranuleBytes < 1 || max(measured.ContextBytes, measured.GranuleBytes) > maxCapacity {
		return fmt.Errorf("devmap: context_bytes %d, granule_bytes %d: none is negative, or more than 2^50", measured.ContextBytes, measured.GranuleBytes)
	}
	if err := measured.Rates.check(); err != nil {
		return fmt.Errorf("devmap: %w", err)
	}
	return nil
}
