package costmodel

import (
	"cmp"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// topologyVersion is the format of a topology file.
const topologyVersion = "devmap.topology/v1"

// reportVersion is the format of a run's report, whose topology has the measured times.
const reportVersion = "devmap.report/v1"

type fileTopology struct {
	FormatVersion string       `json:"format_version"`
	Devices       []fileDevice `json:"devices"`
	Links         []Link       `json:"links,omitzero"`
	HostMemory    int64        `json:"host_memory_bytes,omitzero"`
}

type fileDevice struct {
	Name           string      `json:"name"`
	CapacityBytes  *int64      `json:"capacity_bytes,omitzero"`
	ReservedBytes  *int64      `json:"reserved_bytes,omitzero"`
	WorkspaceBytes *int64      `json:"workspace_bytes,omitzero"`
	ContextBytes   *int64      `json:"context_bytes,omitzero"`
	FLOPS          *float64    `json:"flops,omitzero"`
	Slack          *[2]float64 `json:"slack,omitzero"`
	Capability     string      `json:"compute_capability,omitzero"`
	Host           string      `json:"host,omitzero"`
	GPU            string      `json:"gpu,omitzero"`
	Own            own         `json:"devmap,omitzero"`
	Rates
	// The ratios that the file gives: no work takes 0 seconds, and a ratio of 0 is not an absent one.
	Forward  *float64 `json:"forward_ratio,omitzero"`
	Backward *float64 `json:"backward_ratio,omitzero"`
	Weights  *float64 `json:"weights_ratio,omitzero"`
	Update   *float64 `json:"update_ratio,omitzero"`
}

// ratios takes the ratios of the file into the rates. It names the first one that cannot be one.
func (device *fileDevice) ratios() (fault string) {
	rates := &device.Rates
	for _, ratio := range []struct {
		name  string
		given *float64
		to    *float64
	}{
		{"forward_ratio", device.Forward, &rates.ForwardRatio},
		{"backward_ratio", device.Backward, &rates.BackwardRatio},
		{"weights_ratio", device.Weights, &rates.WeightsRatio},
		{"update_ratio", device.Update, &rates.UpdateRatio},
	} {
		switch {
		case ratio.given == nil:
		case *ratio.given == 0 || !within(*ratio.given, 0, 1e21):
			return fmt.Sprintf("%s: %v is not above 0 and at most 1e21 (leave it out if it is not measured)", ratio.name, *ratio.given)
		default:
			*ratio.to = *ratio.given
		}
	}
	return ""
}

// over lays the fields that the file gives over a known GPU's. A capacity in the file is what may
// be used, so that the known reserve goes with the known capacity.
func (device *fileDevice) over(dev Device) Device {
	dev.Name, dev.Host, dev.GPU, dev.Own = device.Name, device.Host, device.GPU, device.Own
	if device.CapacityBytes != nil {
		dev.CapacityBytes, dev.ReservedBytes = *device.CapacityBytes, 0
	}
	for _, size := range []struct{ given, to *int64 }{{device.ReservedBytes, &dev.ReservedBytes}, {device.WorkspaceBytes, &dev.WorkspaceBytes}, {device.ContextBytes, &dev.ContextBytes}} {
		if size.given != nil {
			*size.to = *size.given
		}
	}
	if device.FLOPS != nil {
		dev.FLOPS = *device.FLOPS
	}
	if device.Slack != nil {
		dev.Slack = *device.Slack
	}
	dev.ComputeCapability = cmp.Or(device.Capability, dev.ComputeCapability)
	dev.Rates = device.Rates.over(dev.Rates)
	return dev
}

// ParseTopology reads a devmap.topology/v1 file, or the topology of a devmap.report/v1 file. Errors
// name file. base returns a GPU's constants by name, for fields that the file leaves out; without a
// capacity if the name is unknown.
func ParseTopology(file string, data []byte, base func(name string) Device) (*Topology, error) {
	var ft fileTopology
	var run struct {
		FormatVersion string       `json:"format_version"`
		Topology      fileTopology `json:"topology"`
	}
	if err := modelgraph.DecodeJSON(file, data, &run, false); err == nil && run.FormatVersion == reportVersion {
		if ft = run.Topology; ft.FormatVersion == "" {
			return nil, &modelgraph.SyntaxError{File: file, Place: "topology", Msg: "missing: the run measured no times (three training steps or more on GPUs do)"}
		}
	} else if err := modelgraph.DecodeJSON(file, data, &ft, true); err != nil {
		return nil, err
	}
	if ft.FormatVersion != topologyVersion {
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", ft.FormatVersion, topologyVersion)}
	}
	topology := &Topology{Links: ft.Links, HostMemoryBytes: ft.HostMemory}
	for i, fd := range ft.Devices {
		if fault := fd.ratios(); fault != "" {
			return nil, &modelgraph.SyntaxError{File: file, Msg: fmt.Sprintf("devices[%d]: %s", i, fault)}
		}
		device := fd.over(base(fd.Name))
		if fd.CapacityBytes == nil && device.CapacityBytes == 0 {
			return nil, &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("devices[%d].capacity_bytes", i), Msg: fmt.Sprintf("missing, and no GPU %q is known that could tell it", fd.Name)}
		}
		topology.Devices = append(topology.Devices, device)
	}
	if err := topology.Check(); err != nil {
		return nil, &modelgraph.SyntaxError{File: file, Msg: err.Error()}
	}
	return topology, nil
}

// MarshalJSON writes the topology in the form that [ParseTopology] reads.
func (topology Topology) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		FormatVersion string   `json:"format_version"`
		Devices       []Device `json:"devices"`
		Links         []Link   `json:"links,omitzero"`
		HostMemory    int64    `json:"host_memory_bytes,omitzero"`
	}{topologyVersion, topology.Devices, topology.Links, topology.HostMemoryBytes})
}
