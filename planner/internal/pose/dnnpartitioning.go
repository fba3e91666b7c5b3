package pose

import (
	"fmt"
	"io"
	"math"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DNNPartitioning is the problem that a dnn-partitioning file poses: the least
// largest load, in the file's unit (milliseconds). Accelerators come first;
// CPUs have no bound on sizes and pay for no transfers.
func DNNPartitioning(w *benchfile.DNNPartitioning) *graph.Problem {
	p := &graph.Problem{
		Edges: w.Edges,
		Kinds: []graph.Kind{
			{Name: "accelerator", Count: w.Accelerators, Capacity: w.MaxSize},
			{Name: "CPU", Count: w.CPUs, Capacity: math.Inf(1), FreeTransfers: true},
		},
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		time := n.Time
		if !n.Supported {
			time = math.Inf(1)
		}
		p.Nodes = append(p.Nodes, graph.Node{
			Name: n.Name, Time: []float64{time, n.CPUTime}, Size: n.Size,
			Transfer: n.Transfer, Group: n.Group, Backward: n.Backward,
		})
	}
	return p
}

type dnnResult struct {
	MaxLoad float64     `json:"maxLoad"`
	FPGAs   []dnnDevice `json:"fpgas"`
	CPUs    []dnnDevice `json:"cpus"`
}

type dnnDevice struct {
	Load  float64 `json:"load"`
	Nodes []int   `json:"nodes"`
}

// WriteDNNPartitioning writes a placement as the authors' programs do, so that
// they can judge it (dp -expert, greedy -computeLatency). Devices that hold
// nothing are left out, as they do.
func WriteDNNPartitioning(to io.Writer, w *benchfile.DNNPartitioning, place []int) error {
	p := DNNPartitioning(w)
	loads, largest, err := p.Score(place)
	if err != nil {
		return fmt.Errorf("the placement breaks a rule: %w", err)
	}
	devices := make([]dnnDevice, len(loads))
	for v, d := range place {
		devices[d].Nodes = append(devices[d].Nodes, w.Nodes[v].ID)
	}
	out := dnnResult{MaxLoad: largest, FPGAs: []dnnDevice{}, CPUs: []dnnDevice{}}
	for d, held := range devices {
		held.Load = loads[d].Total()
		switch {
		case len(held.Nodes) == 0:
		case d < w.Accelerators:
			out.FPGAs = append(out.FPGAs, held)
		default:
			out.CPUs = append(out.CPUs, held)
		}
	}
	return json.MarshalWrite(to, &out, jsontext.WithIndent("  "))
}
