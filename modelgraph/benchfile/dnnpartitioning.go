package benchfile

import (
	"cmp"
	"fmt"
	"math"
	"strconv"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DNNPartitioning is an input of msr-fiddle/dnn-partitioning (README "Input format"): a graph of
// operators or layers, and the accelerators and CPU cores for them.
type DNNPartitioning struct {
	// MaxSize is the memory of an accelerator in bytes. A CPU has no limit.
	MaxSize            float64
	Accelerators, CPUs int
	Nodes              []dnnLayer
	// Edges join nodes by their index.
	Edges [][2]int
}

// dnnLayer is a layer or operator. Times are in the file's unit, milliseconds.
type dnnLayer struct {
	ID   int
	Name string
	// Time is the time on an accelerator, if Supported says that it can run there.
	Time, CPUTime float64
	Supported     bool
	Backward      bool
	// Group: nodes of one colour class share a device. The classes are numbered from 0 in the order
	// of the file. A node without a class has its own.
	Group int
	Size  float64
	// Transfer is the time that its output takes from an accelerator to the
	// CPU's memory or back; 0 if nothing reads it.
	Transfer float64
}

func (layer dnnLayer) name() string { return layer.Name }

type dnnFile struct {
	MaxSize *float64  `json:"maxSizePerFPGA"`
	FPGAs   *int      `json:"maxFPGAs"`
	CPUs    *int      `json:"maxCPUs"`
	Nodes   []dnnNode `json:"nodes"`
	Edges   []dnnEdge `json:"edges"`
}

type dnnNode struct {
	ID        *int     `json:"id"`
	Name      string   `json:"name"`
	Supported *truth   `json:"supportedOnFpga"`
	CPU       *float64 `json:"cpuLatency"`
	FPGA      *float64 `json:"fpgaLatency"`
	Backward  *truth   `json:"isBackwardNode"`
	Color     *int     `json:"colorClass"`
	Size      *float64 `json:"size"`
}

type dnnEdge struct {
	From *int     `json:"sourceId"`
	To   *int     `json:"destId"`
	Cost *float64 `json:"cost"`
}

func (edge dnnEdge) ends() [2]*int { return [2]*int{edge.From, edge.To} }

// truth is true, false, 1 or 0.
type truth bool

// UnmarshalJSONFrom reads one of these.
func (t *truth) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	switch string(value) {
	case "true", "1":
		*t = true
	case "false", "0":
		*t = false
	default:
		return &json.SemanticError{JSONPointer: decoder.StackPointer(), Err: fmt.Errorf("%s is none of true, false, 1 and 0", shorten(string(value)))}
	}
	return nil
}

func (read *reading) truth(place string, t *truth) bool {
	if t == nil {
		read.fault(place, "missing; it is true, false, 1 or 0")
		return false
	}
	return bool(*t)
}

// parseDNNPartitioning reads such a file; name is in errors, which are [*modelgraph.SyntaxError].
// Unknown members are skipped, as the README allows. A cycle is named if the edges have another
// fault; else the solver finds it.
func parseDNNPartitioning(name string, data []byte) (*DNNPartitioning, error) {
	var file dnnFile
	if err := modelgraph.DecodeJSON(name, data, &file, false); err != nil {
		return nil, err
	}
	read := &reading{file: name}
	p := &DNNPartitioning{
		MaxSize:      read.positive("maxSizePerFPGA", file.MaxSize),
		Accelerators: read.devices("maxFPGAs", file.FPGAs),
		CPUs:         read.devices("maxCPUs", file.CPUs),
	}
	if p.Accelerators+p.CPUs == 0 {
		read.fault("maxFPGAs", "0 and maxCPUs 0: there are no devices")
	}
	if len(file.Nodes) == 0 {
		read.fault("nodes", "there are none")
	}
	index := read.dnnNodes(file.Nodes, p)
	read.dnnEdges(file.Edges, index, p)
	if read.err == nil {
		return p, nil
	}
	return nil, cmp.Or(cycle(name, names(p.Nodes), knownEnds(file.Edges, index)), read.err)
}

func (read *reading) devices(place string, value *int) int {
	count := read.whole(place, value)
	if count < 0 || count > maxDevices {
		read.fault(place, "%d is not between 0 and %d", count, maxDevices)
		return 0
	}
	return count
}

// maxDevices limits the devices of a file.
const maxDevices = 1 << 16

func (read *reading) dnnNodes(nodes []dnnNode, file *DNNPartitioning) (index map[int]int) {
	index = make(map[int]int)
	groups, fresh := make(map[int]int), 0
	for i := range nodes {
		node := &nodes[i]
		place := fmt.Sprintf("nodes[%d]", i)
		id := read.whole(place+".id", node.ID)
		if j, known := index[id]; known {
			read.fault(place+".id", "%d is also the id of nodes[%d]", id, j)
		}
		index[id] = i
		group, known := fresh, false
		if node.Color != nil {
			group, known = groups[*node.Color]
		}
		if !known {
			group = fresh
			fresh++
		}
		if node.Color != nil {
			groups[*node.Color] = group
		}
		size := 0.0
		if node.Size != nil {
			size = read.amount(place+".size", node.Size)
		}
		file.Nodes = append(file.Nodes, dnnLayer{
			ID: id, Name: cmp.Or(node.Name, "node"+strconv.Itoa(id)), Group: group, Size: size,
			Time: read.amount(place+".fpgaLatency", node.FPGA), CPUTime: read.amount(place+".cpuLatency", node.CPU),
			Supported: read.truth(place+".supportedOnFpga", node.Supported), Backward: read.truth(place+".isBackwardNode", node.Backward),
		})
	}
	return index
}

// dnnEdges checks that the edges of a node have the same cost, to the 1e-6 that the authors' own
// reader allows.
func (read *reading) dnnEdges(edges []dnnEdge, index map[int]int, file *DNNPartitioning) {
	first := make(map[int]int)
	for i, edge := range edges {
		place := fmt.Sprintf("edges[%d]", i)
		from, to := read.node(place+".sourceId", edge.From, index), read.node(place+".destId", edge.To, index)
		cost := read.amount(place+".cost", edge.Cost)
		if read.err != nil {
			return
		}
		if from == to {
			read.fault(place, "from node %d to itself", *edge.From)
		}
		if j, known := first[from]; !known {
			first[from] = i
			file.Nodes[from].Transfer = cost
		} else if have := file.Nodes[from].Transfer; math.Abs(cost-have) > 1e-6 {
			read.fault(place+".cost", "%v, but edges[%d] from the same node %d costs %v; an output has one cost", cost, j, *edge.From, have)
		}
		file.Edges = append(file.Edges, [2]int{from, to})
	}
}
