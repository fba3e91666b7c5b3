package ask

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// GPUs has the flags that describe the GPUs.
type GPUs struct {
	gpus, gpu, topology string
	reserve             []string
	nodes               int64
	// Probe measures this machine's GPUs for --gpus auto and returns a topology file; nil if this
	// build cannot.
	Probe func() ([]byte, error)

	cmd *cobra.Command
}

// NamesDevices reports that the flags describe the GPUs.
func (asked *GPUs) NamesDevices() bool { return asked.gpus != "" || asked.topology != "" }

// devices builds the topology of the flags: a file, a count, or a list of capacities. count is the
// default number.
func (asked *GPUs) devices(mode costmodel.Mode, count int) (*costmodel.Topology, error) {
	gpu, err := catalogue.Find(asked.gpu)
	if err != nil {
		return nil, out.Usagef("--gpu: %w", err)
	}
	var topology *costmodel.Topology
	switch {
	case asked.topology != "" && asked.gpus != "":
		return nil, out.Usagef("--topology and --gpus both say what the devices are: give one")
	case asked.topology != "":
		topology, err = out.Interruptible(asked.cmd.Context(), 0, asked.topology, func() (*costmodel.Topology, error) {
			return readTopology(asked.topology, func(name string) costmodel.Device { return knownDevice(name, gpu, mode) })
		})
	case asked.measures() && asked.Probe != nil:
		topology, err = asked.probed(func(name string) costmodel.Device { return knownDevice(name, gpu, mode) })
	default:
		topology, err = asked.listed(gpu.Device(mode), count)
	}
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(asked.setAside(topology), asked.onHosts(topology)); err != nil {
		return nil, err
	}
	if err := topology.Check(); err != nil {
		return nil, gpuFault(err)
	}
	return topology, nil
}

// measures reports that the GPUs are this machine's, measured now.
func (asked *GPUs) measures() bool { return asked.gpus == "auto" }

// probed returns the topology of this machine's GPUs.
func (asked *GPUs) probed(base func(name string) costmodel.Device) (*costmodel.Topology, error) {
	document, err := asked.Probe()
	if err != nil {
		return nil, fmt.Errorf("--gpus auto: %w: --gpus N or --topology FILE plans without", err)
	}
	return costmodel.ParseTopology("devmap probe", document, base)
}

// knownDevice returns the catalogue's data of a device in a topology file. For an unknown device it
// returns the rates of gpu without its capacity.
func knownDevice(name string, gpu catalogue.GPU, mode costmodel.Mode) costmodel.Device {
	if named, err := catalogue.Find(name); err == nil {
		return named.Device(mode)
	}
	other := gpu.Device(mode)
	other.CapacityBytes = 0
	return other
}

func (asked *GPUs) listed(gpu costmodel.Device, count int) (*costmodel.Topology, error) {
	topology := &costmodel.Topology{}
	switch {
	case asked.gpus == "" && count == 0:
		return nil, out.Usagef("--gpus is needed: a count (--gpus 4), or the capacities in device order (--gpus 80GiB,80GiB,24GiB)")
	case asked.measures():
		return nil, out.Usagef("--gpus auto: this build has no CUDA support; run make cuda, or use --topology FILE with a file that devmap probe -o FILE wrote")
	case asked.gpus != "":
		number, err := strconv.Atoi(asked.gpus)
		if err != nil {
			return asked.capacities(gpu)
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

// namedByMistake returns the catalogue's names for a GPU name given as a size; empty if none
// matches.
func namedByMistake(value string) string {
	if gpu, err := gpuNamed(value); err == nil {
		return gpu
	}
	return strings.Join(ofDriver(value), " or ")
}

// capacities reads 80GiB,80GiB,24GiB: usable sizes. 48GB is a size that GPUs are sold as
// ([soldAs]).
func (asked *GPUs) capacities(gpu costmodel.Device) (*costmodel.Topology, error) {
	topology := &costmodel.Topology{}
	for _, value := range strings.Split(asked.gpus, ",") {
		capacity, err := size(value)
		if err != nil {
			if named := namedByMistake(value); named != "" {
				return nil, out.Usagef("--gpus %q: %q is the name of a GPU; use --gpus %d --gpu %s", asked.gpus, value, strings.Count(asked.gpus, ",")+1, named)
			}
			return nil, out.Usagef("--gpus %q: it is neither a count nor a list of capacities: %w", asked.gpus, err)
		}
		if usable, like := soldAs(value); like != "" {
			capacity = usable
		}
		device := gpu
		device.CapacityBytes, device.ReservedBytes = capacity, 0
		topology.Devices = append(topology.Devices, device)
	}
	return topology, nil
}

// setAside adds --reserve to the reserved bytes.
func (asked *GPUs) setAside(topology *costmodel.Topology) error {
	for _, sizes := range asked.reserve {
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

// betweenHosts is the bytes/s of a GPU to other hosts with --nodes: one 400 Gb/s port per GPU, as
// in DGX H100 (NVIDIA DGX H100/H200 User Guide, ConnectX-7).
const betweenHosts = 50e9

// onHosts divides the GPUs among the hosts of --nodes, one host after another.
func (asked *GPUs) onHosts(topology *costmodel.Topology) error {
	count := int64(len(topology.Devices))
	switch {
	case asked.nodes < 1 && given(asked.cmd.Flags(), "nodes"):
		return out.Usagef("--nodes %d: it must be 1 or more", asked.nodes)
	case asked.nodes <= 1:
		return nil
	case asked.topology != "":
		return out.Usagef("--nodes and --topology both say what the hosts are: name the host of each device in %s, or give --gpus", out.OneLine(asked.topology))
	case count%asked.nodes != 0:
		each := asked.nodes
		for each%asked.form() != 0 {
			each += asked.nodes
		}
		below, above := count/each*each, (count/each+1)*each
		works := fmt.Sprintf("--gpus %d works", above)
		if below > 0 {
			works = fmt.Sprintf("--gpus %d and --gpus %d work", below, above)
		}
		return out.Usagef("--nodes %d: %d GPUs in all are not as many on each host (%s)", asked.nodes, count, works)
	}
	for i := range topology.Devices {
		if device := &topology.Devices[i]; device.HostBytesPerSecond == 0 {
			device.HostBytesPerSecond = betweenHosts
		}
		topology.Devices[i].Host = fmt.Sprintf("node%d", int64(i)*asked.nodes/count)
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

// otherDevices refuses devices that differ from the plan's. It compares only properties that the
// flags set: a count says nothing about the kind.
func (asked *GPUs) otherDevices(plan *devicemap.Plan) error {
	if !given(asked.cmd.Flags(), "gpus", "gpu", "topology", "reserve") {
		return nil
	}
	topology, err := asked.devices(plan.Workload.Mode, len(plan.Topology.Devices))
	if err != nil {
		return err
	}
	_, counted := strconv.Atoi(asked.gpus)
	kind, sizes := given(asked.cmd.Flags(), "gpu", "topology"), asked.gpus != "" && counted != nil
	same := len(topology.Devices) == len(plan.Topology.Devices)
	for i := 0; same && i < len(topology.Devices); i++ {
		device, planned := topology.Devices[i], plan.Topology.Devices[i]
		reserved := device.ReservedBytes == planned.ReservedBytes || !given(asked.cmd.Flags(), "reserve", "topology")
		size := device.CapacityBytes == planned.CapacityBytes || !sizes && !kind
		same = reserved && size && (device.Name == planned.Name || !kind)
	}
	if !same {
		return out.Usagef("%s: the plan is for %d GPUs, which are others or have other room: leave it out, or plan again", asked.devicesGiven(), len(plan.Topology.Devices))
	}
	return nil
}

// devicesGiven lists the given flags that describe GPUs.
func (asked *GPUs) devicesGiven() string {
	var words []string
	for _, name := range []string{"gpus", "gpu", "topology", "reserve"} {
		if given(asked.cmd.Flags(), name) {
			words = append(words, "--"+name)
		}
	}
	return strings.Join(words, " ")
}

// topologyPlace matches a device's place in errors of topology files.
var topologyPlace = regexp.MustCompile(`^devices\[(\d+)\]: `)

// gpuFault returns an error about GPUs from flags, not from a file.
func gpuFault(err error) error {
	return out.Usagef("%s", topologyPlace.ReplaceAllString(err.Error(), "GPU $1: "))
}
