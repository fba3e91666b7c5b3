package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/downset"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// solveDNN places the nodes of a dnn-partitioning file in contiguous parts.
func solveDNN(ctx context.Context, file *benchfile.DNNPartitioning, set Settings) (*Answer, error) {
	problem := graphProblem(file)
	found, err := downset.Solve(ctx, problem, set.Progress)
	var none *graph.InfeasibleError
	if errors.As(err, &none) {
		return nil, &InfeasibleError{err}
	}
	if err != nil {
		return nil, err
	}
	loads, _, err := problem.Score(found.Place)
	if err != nil {
		return nil, err
	}
	answer := &Answer{
		Certificate: found.Certificate, Form: "contiguous", Method: found.Method, Unit: "ms",
		Write: func(to io.Writer) error { return writePlacement(to, file, found.Place) },
	}
	nodes := count(found.Place, len(loads))
	for device, load := range loads {
		name := fmt.Sprintf("%d %s", device, problem.Kinds[problem.KindOf(device)].Name)
		answer.Devices = append(answer.Devices, Device{name, nodes[device], load.Time, load.Transfers, load.Size})
	}
	return answer, nil
}

// graphProblem is the problem that a dnn-partitioning file defines: minimize the largest load, in
// the file's unit (milliseconds). Accelerators come first. CPUs have no limit on sizes and no
// transfer cost.
func graphProblem(file *benchfile.DNNPartitioning) *graph.Problem {
	problem := &graph.Problem{
		Edges: file.Edges,
		Kinds: []graph.Kind{
			{Name: "accelerator", Count: file.Accelerators, Capacity: file.MaxSize},
			{Name: "CPU", Count: file.CPUs, Capacity: math.Inf(1), FreeTransfers: true},
		},
	}
	for i := range file.Nodes {
		node := &file.Nodes[i]
		time := node.Time
		if !node.Supported {
			time = math.Inf(1)
		}
		problem.Nodes = append(problem.Nodes, graph.Node{
			Name: node.Name, Time: []float64{time, node.CPUTime}, Size: node.Size,
			Transfer: node.Transfer, Group: node.Group, Backward: node.Backward,
		})
	}
	return problem
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

// writePlacement writes a placement in the format of the authors' programs, so that they can score
// it (dp -expert). Both leave out devices without nodes.
func writePlacement(to io.Writer, file *benchfile.DNNPartitioning, place []int) error {
	problem := graphProblem(file)
	loads, largest, err := problem.Score(place)
	if err != nil {
		return fmt.Errorf("the placement breaks a rule: %w", err)
	}
	devices := make([]dnnDevice, len(loads))
	for node, device := range place {
		devices[device].Nodes = append(devices[device].Nodes, file.Nodes[node].ID)
	}
	out := dnnResult{MaxLoad: largest, FPGAs: []dnnDevice{}, CPUs: []dnnDevice{}}
	for device, nodes := range devices {
		nodes.Load = loads[device].Total()
		switch {
		case len(nodes.Nodes) == 0:
		case device < file.Accelerators:
			out.FPGAs = append(out.FPGAs, nodes)
		default:
			out.CPUs = append(out.CPUs, nodes)
		}
	}
	return json.MarshalWrite(to, &out, jsontext.WithIndent("  "))
}
