package ask

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner"
)

// otherGPUs says how the user would ask for another number of GPUs, or for
// those of another kind: a count as a count, a list with more of its largest,
// a topology file, which no flag alters, in flags of its own.
func (request *Request) otherGPUs(now *costmodel.Topology, mode costmodel.Mode, count int, kind string) (topology *costmodel.Topology, set []costmodel.Setting, without []string) {
	other, total := *request, len(now.Devices)
	more := slices.Repeat([]int{largest(now)}, max(0, count-total))
	switch _, err := strconv.Atoi(request.gpus); {
	case request.topology != "" || request.measures():
		if len(now.Links) > 0 && request.minimised() != planner.Memory {
			return nil, nil, nil // the flags have no links, and a step without them says nothing
		}
		other.unfiled(now, count, more, kind)
	case err == nil:
		other.gpus = strconv.Itoa(count)
		if kind != "" {
			other.gpu = kind
		}
	default:
		sizes := strings.Split(request.gpus, ",")
		if kind != "" || len(sizes) != total {
			return nil, nil, nil // another kind has the same sizes
		}
		other.gpus = resized(sizes, count, more)
	}
	other.reserve = slices.Clone(other.reserve)
	for i, reserve := range other.reserve {
		if parts := strings.Split(reserve, ","); len(parts) == total && total > 1 {
			other.reserve[i] = resized(parts, count, more)
		}
	}
	topo, err := other.devices(mode, 0)
	if err != nil {
		return nil, nil, nil
	}
	set, without = request.insteadBy(&other)
	return topo, set, without
}

// insteadBy are the flags that make the command's GPUs those of another.
func (request *Request) insteadBy(other *Request) (set []costmodel.Setting, without []string) {
	differs := func(field, was, is string) {
		if is != was {
			set = append(set, costmodel.Setting{Field: field, Value: is})
		}
	}
	differs("gpus", request.gpus, other.gpus)
	differs("gpu", request.gpu, other.gpu)
	if other.topology != request.topology {
		without = append(without, "topology")
	}
	switch {
	case len(other.reserve) == 0 && len(request.reserve) > 0:
		without = append(without, "reserve")
	case !slices.Equal(other.reserve, request.reserve):
		for _, sizes := range other.reserve {
			set = append(set, costmodel.Setting{Field: "reserve", Value: sizes})
		}
	}
	return set, without
}

// unfiled puts flags in place of a topology file: GPUs of the catalogue as
// they are, else what each may hold.
func (request *Request) unfiled(now *costmodel.Topology, count int, more []int, kind string) {
	request.topology, request.reserve = "", nil
	request.gpus, request.gpu = strconv.Itoa(count), kind
	if kind != "" {
		return
	}
	request.gpu = catalogue.DefaultGPU
	gpu, err := catalogue.Find(now.Devices[0].Name)
	if err == nil {
		request.gpu = now.Devices[0].Name
	}
	listed := gpu.Device("")
	var sizes []string
	same := err == nil
	for i := range now.Devices {
		device := &now.Devices[i]
		sizes = append(sizes, exact(device.Budget()))
		same = same && device.Name == now.Devices[0].Name && device.CapacityBytes == listed.CapacityBytes && device.ReservedBytes == listed.ReservedBytes
	}
	if !same {
		request.gpus = resized(sizes, count, more)
	}
}

// resized is the list of as many sizes: fewer, or with those of the devices
// in more after them.
func resized(sizes []string, count int, more []int) string {
	out := slices.Clone(sizes[:min(count, len(sizes))])
	for _, device := range more {
		out = append(out, sizes[device])
	}
	return strings.Join(out, ",")
}

// largest is the first device of the largest budget.
func largest(topology *costmodel.Topology) int {
	best := 0
	for device := range topology.Devices {
		if topology.Devices[device].Budget() > topology.Devices[best].Budget() {
			best = device
		}
	}
	return best
}

// exact is a size as a flag takes it, to the byte.
func exact(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%dGiB", bytes>>30)
	}
	return fmt.Sprintf("%dB", bytes)
}
