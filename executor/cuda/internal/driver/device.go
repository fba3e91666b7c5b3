//go:build cuda && linux && cgo && amd64

package driver

import (
	"errors"
	"fmt"
	"runtime"

	"gorgonia.org/cu"
)

// Device is a GPU.
type Device struct {
	Ordinal int
	Name    string
	UUID    string // in NVML's form, GPU-…
	Total   int64  // bytes
	// Capability is major·10 + minor, 90 for Hopper.
	Capability, Processors int

	device cu.Device
}

// Devices returns the GPUs that the driver shows to the process.
func Devices() ([]Device, error) {
	count, err := cu.NumDevices()
	if err != nil {
		return nil, of("cuDeviceGetCount", err)
	}
	devices := make([]Device, count)
	for i := range devices {
		if err := devices[i].describe(i); err != nil {
			return nil, err
		}
	}
	return devices, nil
}

func (device *Device) describe(ordinal int) error {
	found, err := cu.GetDevice(ordinal)
	if err != nil {
		return of("cuDeviceGet", err)
	}
	device.Ordinal, device.device = ordinal, found
	if device.Name, err = found.Name(); err != nil {
		return of("cuDeviceGetName", err)
	}
	id, err := found.UUID()
	if err != nil {
		return of("cuDeviceGetUuid", err)
	}
	device.UUID = "GPU-" + id.String()
	if device.Total, err = found.TotalMem(); err != nil {
		return of("cuDeviceTotalMem", err)
	}
	values, err := found.Attributes(cu.ComputeCapabilityMajor, cu.ComputeCapabilityMinor, cu.MultiprocessorCount)
	if err != nil {
		return of("cuDeviceGetAttribute", err)
	}
	device.Capability, device.Processors = 10*values[0]+values[1], values[2]
	return nil
}

// Reaches reports whether kernels and copies of one GPU reach the other's memory.
func (device *Device) Reaches(other *Device) (bool, error) {
	if device.Ordinal == other.Ordinal {
		return true, nil
	}
	reaches, err := device.device.CanAccessPeer(other.device)
	return reaches != 0, of("cuDeviceCanAccessPeer", err)
}

// Context is a GPU's primary context, which cuBLAS shares.
type Context struct {
	*Device
	context cu.CUContext
}

// Retain makes the primary context, or adds a user to it.
func (device *Device) Retain() (*Context, error) {
	context, err := device.device.RetainPrimaryCtx()
	if err != nil {
		return nil, of("cuDevicePrimaryCtxRetain", err)
	}
	enter("contexts", 1, 0)
	return &Context{device, context}, nil
}

// Release releases the context, which ends with its last user.
func (context *Context) Release() error {
	if err := context.device.ReleasePrimaryCtx(); err != nil {
		return of("cuDevicePrimaryCtxRelease", err)
	}
	enter("contexts", -1, 0)
	return nil
}

// Bind locks the goroutine to its thread and binds the context to that, as every other call
// requires. The thread ends with the goroutine, which never unlocks.
func (context *Context) Bind() error {
	runtime.LockOSThread()
	return context.Use()
}

// Use binds the context to the locked thread, in place of another one.
func (context *Context) Use() error {
	return of("cuCtxSetCurrent", cu.SetCurrentContext(context.context))
}

// Within calls a function on a thread to which the context is bound meanwhile.
func (context *Context) Within(call func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := of("cuCtxSetCurrent", cu.SetCurrentContext(context.context)); err != nil {
		return err
	}
	return errors.Join(call(), of("cuCtxSetCurrent", cu.SetCurrentContext(cu.CUContext{})))
}

// FreeMemory returns the free and the total bytes of the context's GPU. Memory of other processes
// is not free. The context must be bound.
func FreeMemory() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, of("cuMemGetInfo", err)
}

// Synchronize waits until all work of the bound context has ended.
func Synchronize() error { return of("cuCtxSynchronize", cu.Synchronize()) }

// Version returns the CUDA version of the driver, such as 13000.
func Version() (int, error) {
	version := cu.Version()
	if version < 0 {
		return 0, fmt.Errorf("cuDriverGetVersion: it tells none")
	}
	return version, nil
}
