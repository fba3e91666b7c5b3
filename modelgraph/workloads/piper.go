package workloads

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Piper is an input of Piper's planner (msr-fiddle/piper, README "Input
// format"): a training graph with, per node and degree of tensor parallelism,
// the ways to run it.
type Piper struct {
	// MaxMemory is what a device holds in bytes, Bandwidth bytes a second from
	// each device to the others. Their planner overrides both, and the number
	// of devices, for its figures.
	MaxMemory  float64
	MaxDevices int
	Bandwidth  float64
	// MicroBatches in a batch.
	MicroBatches int
	Nodes        []PiperNode
	Edges        []PiperEdge
}

// PiperNode is a layer.
type PiperNode struct {
	ID   int
	Name string
	// Configs are the ways to run it, by the degree of tensor parallelism.
	Configs map[int][]PiperConfig
}

// PiperConfig is one way to run a layer, Piper's TMPC. Times are per
// micro-batch, forward and backward, in the unit of the file (seconds for
// BERT, milliseconds for the others).
type PiperConfig struct {
	ID   string // "vanilla", "activation recomp"
	Time float64
	// Parameters are the weights' bytes. The layer holds PerMicroBatch bytes
	// for each micro-batch in flight and Fixed bytes besides.
	Parameters, PerMicroBatch, Fixed float64
	// SyncForward and SyncBackward are bytes that an edge costs besides its
	// own, by the index in Edges of an edge into and out of the layer.
	SyncForward, SyncBackward map[int]float64
}

// PiperEdge joins nodes by their index; it carries Bytes.
type PiperEdge struct {
	From, To int
	Bytes    float64
}

type piperFile struct {
	MaxMemory    *float64    `json:"maxMemoryPerDevice"`
	MaxDevices   *int        `json:"maxDevices"`
	Bandwidth    *float64    `json:"bandwidth"`
	MicroBatches *int        `json:"mbsInBatch"`
	MaxBatchSize *int        `json:"maxBatchSize"` // the README's name
	Nodes        []piperNode `json:"nodes"`
	Edges        []piperEdge `json:"edges"`
}

type piperNode struct {
	ID      *int                     `json:"id"`
	Name    string                   `json:"name"`
	Configs map[string][]piperConfig `json:"TMPCs"`
}

type piperConfig struct {
	ID           string             `json:"id"`
	Time         *float64           `json:"timePerSample"`
	Parameters   *float64           `json:"parameterSize"`
	A            *float64           `json:"memoryUsageA"`
	B            *float64           `json:"memoryUsageB"`
	SyncForward  map[string]float64 `json:"syncTimeFw"`
	SyncBackward map[string]float64 `json:"syncTimeBw"`
}

type piperEdge struct {
	From  *int     `json:"sourceId"`
	To    *int     `json:"destId"`
	Bytes *float64 `json:"communicationCost"`
}

// ParsePiper reads such a file; name stands in errors, which are
// [*modelgraph.SyntaxError]. Members that the format does not know are passed
// over, as its README allows. Whether the graph has a cycle is not looked at.
func ParsePiper(name string, data []byte) (*Piper, error) {
	var f piperFile
	if err := modelgraph.DecodeJSON(name, data, &f, false); err != nil {
		return nil, err
	}
	r := &reading{file: name}
	p := &Piper{
		MaxMemory:    r.positive("maxMemoryPerDevice", f.MaxMemory),
		MaxDevices:   r.count("maxDevices", f.MaxDevices),
		Bandwidth:    r.positive("bandwidth", f.Bandwidth),
		MicroBatches: r.count("mbsInBatch", cmp.Or(f.MicroBatches, f.MaxBatchSize)),
	}
	index := make(map[int]int)
	if len(f.Nodes) == 0 {
		r.fault("nodes", "there are none")
	}
	for i, n := range f.Nodes {
		place := fmt.Sprintf("nodes[%d]", i)
		id := r.whole(place+".id", n.ID)
		if j, known := index[id]; known {
			r.fault(place+".id", "%d is also the id of nodes[%d]", id, j)
		}
		index[id] = i
		p.Nodes = append(p.Nodes, PiperNode{ID: id, Name: cmp.Or(n.Name, "node"+strconv.Itoa(id))})
	}
	p.Edges = r.piperEdges(f.Edges, index)
	for i, n := range f.Nodes {
		p.Nodes[i].Configs = r.piperConfigs(fmt.Sprintf("nodes[%d].TMPCs", i), n.Configs, p.ends(i))
	}
	if r.err != nil {
		return nil, r.err
	}
	return p, nil
}

func (r *reading) piperEdges(edges []piperEdge, index map[int]int) []PiperEdge {
	var out []PiperEdge
	seen := make(map[[2]int]int)
	for i, e := range edges {
		place := fmt.Sprintf("edges[%d]", i)
		from, to := r.node(place+".sourceId", e.From, index), r.node(place+".destId", e.To, index)
		if j, known := seen[[2]int{from, to}]; known {
			r.fault(place, "joins the same nodes as edges[%d]", j)
		}
		if from == to {
			r.fault(place, "from node %d to itself", r.whole(place, e.From))
		}
		seen[[2]int{from, to}] = i
		out = append(out, PiperEdge{from, to, r.amount(place+".communicationCost", e.Bytes)})
	}
	return out
}

// ends maps the ids of the nodes around a node to edges: those into it, and
// those out of it.
func (p *Piper) ends(node int) [2]map[int]int {
	in, out := make(map[int]int), make(map[int]int)
	for i, e := range p.Edges {
		if e.To == node {
			in[p.Nodes[e.From].ID] = i
		}
		if e.From == node {
			out[p.Nodes[e.To].ID] = i
		}
	}
	return [2]map[int]int{in, out}
}

func (r *reading) piperConfigs(place string, configs map[string][]piperConfig, ends [2]map[int]int) map[int][]PiperConfig {
	out := make(map[int][]PiperConfig)
	for _, key := range slices.Sorted(maps.Keys(configs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		degree, err := strconv.Atoi(key)
		if err != nil || degree < 1 {
			r.fault(at, "%q is not a degree of tensor parallelism, 1 or more", key)
			continue
		}
		for i, c := range configs[key] {
			at := fmt.Sprintf("%s[%d]", at, i)
			if c.ID == "" {
				r.fault(at+".id", "a configuration needs a name")
			}
			out[degree] = append(out[degree], PiperConfig{
				ID: c.ID, Time: r.amount(at+".timePerSample", c.Time), Parameters: r.amount(at+".parameterSize", c.Parameters),
				PerMicroBatch: r.amount(at+".memoryUsageA", c.A), Fixed: r.amount(at+".memoryUsageB", c.B),
				SyncForward:  r.syncs(at+".syncTimeFw", c.SyncForward, ends[0]),
				SyncBackward: r.syncs(at+".syncTimeBw", c.SyncBackward, ends[1]),
			})
		}
	}
	return out
}

// syncs has to name every edge once, by the id at its other end.
func (r *reading) syncs(place string, syncs map[string]float64, ends map[int]int) map[int]float64 {
	out := make(map[int]float64, len(syncs))
	for _, key := range slices.Sorted(maps.Keys(syncs)) {
		at := fmt.Sprintf("%s[%q]", place, key)
		id, err := strconv.Atoi(key)
		edge, known := ends[id]
		if err != nil || !known {
			r.fault(at, "no edge joins this node and a node %q", key)
			continue
		}
		bytes := syncs[key]
		out[edge] = r.amount(at, &bytes)
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		if _, known := out[ends[id]]; !known {
			r.fault(place, "the edge that joins it and node %d is missing", id)
		}
	}
	return out
}
