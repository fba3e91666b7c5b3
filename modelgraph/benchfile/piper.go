package benchfile

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
)

// Piper is an input of Piper's planner (msr-fiddle/piper, README "Input format"). It is a training
// graph with the ways to run each node at each degree of tensor parallelism.
type Piper struct {
	// MaxMemory is the memory of a device in bytes, Bandwidth the bytes a second from each device
	// to the others. Piper's planner overrides both, and the number of devices, for its published
	// figures.
	MaxMemory  float64
	MaxDevices int
	Bandwidth  float64
	// MicroBatches in a batch.
	MicroBatches int
	Nodes        []piperLayer
	Edges        []piperTransfer
}

// piperLayer is a layer.
type piperLayer struct {
	ID   int
	Name string
	// Configs are the ways to run it, by degree of tensor parallelism.
	Configs map[int][]piperWay
}

func (node piperLayer) name() string { return node.Name }

// piperWay is one way to run a layer, Piper's TMPC. Times are per
// micro-batch, forward and backward, in the unit of the file (seconds for
// BERT, milliseconds for the others).
type piperWay struct {
	ID   string // "vanilla", "activation recomp"
	Time float64
	// Parameters are the weights' bytes. The layer needs PerMicroBatch bytes for each micro-batch
	// in flight, and Fixed bytes in addition.
	Parameters, PerMicroBatch, Fixed float64
	// SyncForward and SyncBackward are additional bytes of an edge into or out of the layer, by the
	// index in Edges.
	SyncForward, SyncBackward map[int]float64
}

// piperTransfer is an edge that carries Bytes between nodes, given by their index.
type piperTransfer struct {
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

func (edge piperEdge) ends() [2]*int { return [2]*int{edge.From, edge.To} }

// parsePiper reads such a file; name is in errors, which are [*modelgraph.SyntaxError]. Unknown
// members are skipped, as the README allows. A cycle is named if the edges have another fault; else
// the solver finds it.
func parsePiper(name string, data []byte) (*Piper, error) {
	var file piperFile
	if err := modelgraph.DecodeJSON(name, data, &file, false); err != nil {
		return nil, err
	}
	read := &reading{file: name}
	p := &Piper{
		MaxMemory:    read.positive("maxMemoryPerDevice", file.MaxMemory),
		MaxDevices:   read.count("maxDevices", file.MaxDevices),
		Bandwidth:    read.positive("bandwidth", file.Bandwidth),
		MicroBatches: read.count("mbsInBatch", cmp.Or(file.MicroBatches, file.MaxBatchSize)),
	}
	index := make(map[int]int)
	if len(file.Nodes) == 0 {
		read.fault("nodes", "there are none")
	}
	for i, node := range file.Nodes {
		place := fmt.Sprintf("nodes[%d]", i)
		id := read.whole(place+".id", node.ID)
		if j, known := index[id]; known {
			read.fault(place+".id", "%d is also the id of nodes[%d]", id, j)
		}
		index[id] = i
		p.Nodes = append(p.Nodes, piperLayer{ID: id, Name: cmp.Or(node.Name, "node"+strconv.Itoa(id))})
	}
	p.Edges = read.piperEdges(file.Edges, index)
	around := p.around()
	for i, node := range file.Nodes {
		p.Nodes[i].Configs = read.piperConfigs(fmt.Sprintf("nodes[%d].TMPCs", i), node.Configs, around[i])
	}
	if read.err == nil {
		return p, nil
	}
	return nil, cmp.Or(cycle(name, names(p.Nodes), knownEnds(file.Edges, index)), read.err)
}
