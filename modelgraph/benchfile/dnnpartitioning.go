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

// DNNPartitioning is an input of msr-fiddle/dnn-partitioning (README "Input
// format"): a graph of operators or layers, and accelerators and CPU cores to
// put them on.
type DNNPartitioning struct {
	// MaxSize is what an accelerator holds in bytes; a CPU has no bound.
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
	// Time is that on an accelerator, where Supported says it can run.
	Time, CPUTime float64
	Supported     bool
	Backward      bool
	// Group: nodes of one colour class share a device. The classes are
	// numbered from 0 in the order of the file; a node without a class has
	// one to itself.
	Group int
	Size  float64
	// Transfer is the time that its output takes from an accelerator to the
	// CPU's memory or back; 0 where nothing reads it.
	Transfer float64
}

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

// truth is true, false, 1 or 0.
type truth bool

// UnmarshalJSONFrom reads it.
func (t *truth) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	switch string(v) {
	case "true", "1":
		*t = true
	case "false", "0":
		*t = false
	default:
		return &json.SemanticError{JSONPointer: d.StackPointer(), Err: fmt.Errorf("%s is none of true, false, 1 and 0", shorten(string(v)))}
	}
	return nil
}

func (r *reading) truth(place string, t *truth) bool {
	if t == nil {
		r.fault(place, "missing; it is true, false, 1 or 0")
		return false
	}
	return bool(*t)
}

// parseDNNPartitioning reads such a file; name stands in errors, which are
// [*modelgraph.SyntaxError]. Members that the format does not know are passed
// over, as its README allows. A cycle is named where the edges have another
// fault; else it is the solver's to find.
func parseDNNPartitioning(name string, data []byte) (*DNNPartitioning, error) {
	var f dnnFile
	if err := modelgraph.DecodeJSON(name, data, &f, false); err != nil {
		return nil, err
	}
	r := &reading{file: name}
	p := &DNNPartitioning{
		MaxSize:      r.positive("maxSizePerFPGA", f.MaxSize),
		Accelerators: r.devices("maxFPGAs", f.FPGAs),
		CPUs:         r.devices("maxCPUs", f.CPUs),
	}
	if p.Accelerators+p.CPUs == 0 {
		r.fault("maxFPGAs", "0 and maxCPUs 0: there are no devices")
	}
	if len(f.Nodes) == 0 {
		r.fault("nodes", "there are none")
	}
	index := r.dnnNodes(f.Nodes, p)
	r.dnnEdges(f.Edges, index, p)
	if r.err == nil {
		return p, nil
	}
	var names []string
	for i := range p.Nodes {
		names = append(names, p.Nodes[i].Name)
	}
	var ends [][2]*int
	for _, e := range f.Edges {
		ends = append(ends, [2]*int{e.From, e.To})
	}
	return nil, cmp.Or(cycle(name, names, known(ends, index)), r.err)
}

func (r *reading) devices(place string, v *int) int {
	n := r.whole(place, v)
	if n < 0 || n > mostDevices {
		r.fault(place, "%d is not between 0 and %d", n, mostDevices)
		return 0
	}
	return n
}

// mostDevices bounds what a file can ask for.
const mostDevices = 1 << 16

func (r *reading) dnnNodes(nodes []dnnNode, p *DNNPartitioning) (index map[int]int) {
	index = make(map[int]int)
	groups, fresh := make(map[int]int), 0
	for i := range nodes {
		n := &nodes[i]
		place := fmt.Sprintf("nodes[%d]", i)
		id := r.whole(place+".id", n.ID)
		if j, known := index[id]; known {
			r.fault(place+".id", "%d is also the id of nodes[%d]", id, j)
		}
		index[id] = i
		group, known := fresh, false
		if n.Color != nil {
			group, known = groups[*n.Color]
		}
		if !known {
			group = fresh
			fresh++
		}
		if n.Color != nil {
			groups[*n.Color] = group
		}
		size := 0.0
		if n.Size != nil {
			size = r.amount(place+".size", n.Size)
		}
		p.Nodes = append(p.Nodes, dnnLayer{
			ID: id, Name: cmp.Or(n.Name, "node"+strconv.Itoa(id)), Group: group, Size: size,
			Time: r.amount(place+".fpgaLatency", n.FPGA), CPUTime: r.amount(place+".cpuLatency", n.CPU),
			Supported: r.truth(place+".supportedOnFpga", n.Supported), Backward: r.truth(place+".isBackwardNode", n.Backward),
		})
	}
	return index
}

// dnnEdges checks that a node's edges agree on its cost, to the 1e-6 that the
// authors' own reader allows.
func (r *reading) dnnEdges(edges []dnnEdge, index map[int]int, p *DNNPartitioning) {
	first := make(map[int]int)
	for i, e := range edges {
		place := fmt.Sprintf("edges[%d]", i)
		from, to := r.node(place+".sourceId", e.From, index), r.node(place+".destId", e.To, index)
		cost := r.amount(place+".cost", e.Cost)
		if r.err != nil {
			return
		}
		if from == to {
			r.fault(place, "from node %d to itself", *e.From)
		}
		if j, known := first[from]; !known {
			first[from] = i
			p.Nodes[from].Transfer = cost
		} else if have := p.Nodes[from].Transfer; math.Abs(cost-have) > 1e-6 {
			r.fault(place+".cost", "%v, but edges[%d] from the same node %d costs %v; an output has one cost", cost, j, *e.From, have)
		}
		p.Edges = append(p.Edges, [2]int{from, to})
	}
}
