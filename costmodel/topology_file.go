package costmodel

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph"
)

// topologyVersion is the format of a topology file.
const topologyVersion = "devmap.topology/v1"

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
	Rates
}

// over lays the fields that the file gives over a known GPU's. A capacity in
// the file is what may be used, so that the known reserve goes with the known
// capacity.
func (f *fileDevice) over(d Device) Device {
	d.Name, d.Host = f.Name, f.Host
	if f.CapacityBytes != nil {
		d.CapacityBytes, d.ReservedBytes = *f.CapacityBytes, 0
	}
	if f.ReservedBytes != nil {
		d.ReservedBytes = *f.ReservedBytes
	}
	if f.WorkspaceBytes != nil {
		d.WorkspaceBytes = *f.WorkspaceBytes
	}
	if f.ContextBytes != nil {
		d.ContextBytes = *f.ContextBytes
	}
	if f.FLOPS != nil {
		d.FLOPS = *f.FLOPS
	}
	if f.Slack != nil {
		d.Slack = *f.Slack
	}
	if f.Capability != "" {
		d.ComputeCapability = f.Capability
	}
	d.Rates = f.Rates.over(d.Rates)
	return d
}

// ReadTopology reads a devmap.topology/v1 file. base gives the constants of a
// GPU by name, for fields that the file leaves out; without a capacity where
// the name says nothing.
func ReadTopology(path string, base func(name string) Device) (*Topology, error) {
	const most = 16 << 20
	data, err := modelgraph.ReadSmall(path, "a topology", most)
	if err != nil {
		return nil, err
	}
	return ParseTopology(path, data, base)
}

// ParseTopology is [ReadTopology] of bytes; file stands in errors.
func ParseTopology(file string, data []byte, base func(name string) Device) (*Topology, error) {
	var ft fileTopology
	if err := modelgraph.DecodeJSON(file, data, &ft, true); err != nil {
		return nil, err
	}
	if ft.FormatVersion != topologyVersion {
		return nil, &modelgraph.SyntaxError{File: file, Place: "format_version", Msg: fmt.Sprintf("%q is not %q", ft.FormatVersion, topologyVersion)}
	}
	t := &Topology{Links: ft.Links, HostMemoryBytes: ft.HostMemory}
	for i, fd := range ft.Devices {
		d := fd.over(base(fd.Name))
		if fd.CapacityBytes == nil && d.CapacityBytes == 0 {
			return nil, &modelgraph.SyntaxError{File: file, Place: fmt.Sprintf("devices[%d].capacity_bytes", i), Msg: fmt.Sprintf("missing, and no GPU %q is known that could tell it", fd.Name)}
		}
		t.Devices = append(t.Devices, d)
	}
	if err := t.Check(); err != nil {
		return nil, &modelgraph.SyntaxError{File: file, Msg: err.Error()}
	}
	return t, nil
}

// MarshalJSON writes the topology in the form that ReadTopology reads.
func (t Topology) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		FormatVersion string   `json:"format_version"`
		Devices       []Device `json:"devices"`
		Links         []Link   `json:"links,omitzero"`
		HostMemory    int64    `json:"host_memory_bytes,omitzero"`
	}{topologyVersion, t.Devices, t.Links, t.HostMemoryBytes})
}
