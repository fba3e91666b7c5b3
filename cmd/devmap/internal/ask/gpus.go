package ask

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// devices builds the topology that the flags name: a file, a count, or a list
// of capacities. count stands in where no flag says how many.
func (r *Request) devices(mode costmodel.Mode, count int) (*costmodel.Topology, error) {
	gpu, err := catalogue.Find(r.gpu)
	if err != nil {
		return nil, out.Usagef("--gpu: %w", err)
	}
	var t *costmodel.Topology
	switch {
	case r.topology != "" && r.gpus != "":
		return nil, out.Usagef("--topology and --gpus both say what the devices are: give one")
	case r.topology != "":
		t, err = out.Interruptible(r.cmd.Context(), 0, r.topology, func() (*costmodel.Topology, error) {
			return costmodel.ReadTopology(r.topology, func(name string) costmodel.Device { return knownDevice(name, gpu, mode) })
		})
	default:
		t, err = r.listed(gpu.Device(mode), count)
	}
	if err != nil {
		return nil, err
	}
	if err := r.setAside(t); err != nil {
		return nil, err
	}
	if err := t.Check(); err != nil {
		return nil, out.Usagef("the GPUs asked for: %w", err)
	}
	return t, nil
}

// knownDevice is what the catalogue knows of a device in a topology file. Where
// it knows none, the rates of gpu stand in, its capacity does not.
func knownDevice(name string, gpu catalogue.GPU, mode costmodel.Mode) costmodel.Device {
	if named, err := catalogue.Find(name); err == nil {
		return named.Device(mode)
	}
	other := gpu.Device(mode)
	other.CapacityBytes = 0
	return other
}

func (r *Request) listed(gpu costmodel.Device, count int) (*costmodel.Topology, error) {
	t := &costmodel.Topology{}
	switch {
	case r.gpus == "" && count == 0:
		return nil, out.Usagef("--gpus is needed: a count (--gpus 4), or the capacities in device order (--gpus 80GiB,80GiB,24GiB)")
	case r.gpus == "auto":
		return nil, notBuilt("gpus", "auto", "a count, or a list of capacities")
	case r.gpus != "":
		n, err := strconv.Atoi(r.gpus)
		if err != nil {
			return r.capacities(gpu)
		}
		count = n
	}
	if count < 1 || count > costmodel.MaxDevices {
		return nil, out.Usagef("--gpus %d: it must be 1 to %d", count, costmodel.MaxDevices)
	}
	for range count {
		t.Devices = append(t.Devices, gpu)
	}
	return t, nil
}

// capacities reads 80GiB,80GiB,24GiB: what the user may use, whole.
func (r *Request) capacities(gpu costmodel.Device) (*costmodel.Topology, error) {
	t := &costmodel.Topology{}
	for _, v := range strings.Split(r.gpus, ",") {
		c, err := size(v)
		if err != nil {
			return nil, out.Usagef("--gpus %q: it is neither a count nor a list of capacities: %w", r.gpus, err)
		}
		d := gpu
		d.CapacityBytes, d.ReservedBytes = c, 0
		t.Devices = append(t.Devices, d)
	}
	return t, nil
}

// setAside adds --reserve to what is reserved.
func (r *Request) setAside(t *costmodel.Topology) error {
	for _, sizes := range r.reserve {
		parts := strings.Split(sizes, ",")
		if len(parts) != 1 && len(parts) != len(t.Devices) {
			return out.Usagef("--reserve %q has %d sizes for %d devices: give one, or one each", sizes, len(parts), len(t.Devices))
		}
		for d := range t.Devices {
			b, err := size(parts[min(d, len(parts)-1)])
			if err != nil {
				return out.Usagef("--reserve %q: %w", sizes, err)
			}
			t.Devices[d].ReservedBytes += b
		}
	}
	return nil
}
