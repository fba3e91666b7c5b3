package ask

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/modelgraph"
)

// devices builds the topology that the flags name: a file, a count, or a list
// of capacities. count stands in where no flag says how many.
func (request *Request) devices(mode costmodel.Mode, count int) (*costmodel.Topology, error) {
	gpu, err := catalogue.Find(request.gpu)
	if err != nil {
		return nil, out.Usagef("--gpu: %w", err)
	}
	var topology *costmodel.Topology
	switch {
	case request.topology != "" && request.gpus != "":
		return nil, out.Usagef("--topology and --gpus both say what the devices are: give one")
	case request.topology != "":
		topology, err = out.Interruptible(request.cmd.Context(), 0, request.topology, func() (*costmodel.Topology, error) {
			return readTopology(request.topology, func(name string) costmodel.Device { return knownDevice(name, gpu, mode) })
		})
	case request.measures() && request.Probe != nil:
		topology, err = request.probed(func(name string) costmodel.Device { return knownDevice(name, gpu, mode) })
	default:
		topology, err = request.listed(gpu.Device(mode), count)
	}
	if err != nil {
		return nil, err
	}
	if err := request.setAside(topology); err != nil {
		return nil, err
	}
	if err := topology.Check(); err != nil {
		return nil, out.Usagef("the GPUs asked for: %w", err)
	}
	return topology, nil
}

// measures reports that GPUs are this machine's, as they are.
func (request *Request) measures() bool { return request.gpus == "auto" }

// probed is the topology of this machine's GPUs.
func (request *Request) probed(base func(name string) costmodel.Device) (*costmodel.Topology, error) {
	document, err := request.Probe()
	if err != nil {
		return nil, fmt.Errorf("--gpus auto: %w: --gpus N or --topology FILE plans without", err)
	}
	return costmodel.ParseTopology("devmap probe", document, base)
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

func (request *Request) listed(gpu costmodel.Device, count int) (*costmodel.Topology, error) {
	topology := &costmodel.Topology{}
	switch {
	case request.gpus == "" && count == 0:
		return nil, out.Usagef("--gpus is needed: a count (--gpus 4), or the capacities in device order (--gpus 80GiB,80GiB,24GiB)")
	case request.measures():
		return nil, out.Usagef("--gpus auto: this devmap was built without CUDA (make cuda builds one with it): --topology FILE takes what its devmap probe -o FILE writes where the GPUs are")
	case request.gpus != "":
		number, err := strconv.Atoi(request.gpus)
		if err != nil {
			return request.capacities(gpu)
		}
		count = number
	}
	if count < 1 || count > costmodel.MaxDevices {
		return nil, out.Usagef("--gpus %d: it must be 1 to %d", count, costmodel.MaxDevices)
	}
	for range count {
		topology.Devices = append(topology.Devices, gpu)
	}
	return topology, nil
}

// capacities reads 80GiB,80GiB,24GiB: what the user may use, whole.
func (request *Request) capacities(gpu costmodel.Device) (*costmodel.Topology, error) {
	topology := &costmodel.Topology{}
	for _, value := range strings.Split(request.gpus, ",") {
		capacity, err := size(value)
		if err != nil {
			return nil, out.Usagef("--gpus %q: it is neither a count nor a list of capacities: %w", request.gpus, err)
		}
		device := gpu
		device.CapacityBytes, device.ReservedBytes = capacity, 0
		topology.Devices = append(topology.Devices, device)
	}
	return topology, nil
}

// setAside adds --reserve to what is reserved.
func (request *Request) setAside(topology *costmodel.Topology) error {
	for _, sizes := range request.reserve {
		parts := strings.Split(sizes, ",")
		if len(parts) != 1 && len(parts) != len(topology.Devices) {
			return out.Usagef("--reserve %q has %d sizes for %d devices: give one, or one each", sizes, len(parts), len(topology.Devices))
		}
		for device := range topology.Devices {
			bytes, err := size(parts[min(device, len(parts)-1)])
			if err != nil {
				return out.Usagef("--reserve %q: %w", sizes, err)
			}
			topology.Devices[device].ReservedBytes += bytes
		}
	}
	return nil
}

// readTopology reads a topology file.
func readTopology(path string, base func(name string) costmodel.Device) (*costmodel.Topology, error) {
	const limit = 16 << 20
	data, err := modelgraph.ReadSmall(path, "a topology", limit)
	if err != nil {
		return nil, err
	}
	return costmodel.ParseTopology(path, data, base)
}
