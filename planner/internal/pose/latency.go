package pose

import (
	"io"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Latency is the other problem that a dnn-partitioning file poses: the least
// time that one sample takes, in the file's unit (milliseconds). Where the file
// has CPUs there are enough of them, as the authors' latency-ip/lip.py says and
// latency-greedy/greedy.cpp counts.
func Latency(file *benchfile.DNNPartitioning) *latency.Problem {
	return &latency.Problem{Problem: DNNPartitioning(file)}
}

type latencyResult struct {
	Total float64         `json:"totalLatency"`
	FPGAs []latencyDevice `json:"fpgas"`
	CPUs  []latencyDevice `json:"cpus"`
}

type latencyDevice struct {
	Nodes []int `json:"nodes"`
}

// WriteLatency writes an assignment as the authors' programs do, a call an
// entry, so that they can judge it (greedy -computeLatency). Calls of nothing
// are left out, as they do; the CPUs are one entry.
func WriteLatency(to io.Writer, file *benchfile.DNNPartitioning, problem *latency.Problem, solution *latency.Solution) error {
	_, total, err := problem.Score(solution.Call)
	if err != nil {
		return err
	}
	out := latencyResult{Total: total, FPGAs: []latencyDevice{}, CPUs: []latencyDevice{{Nodes: []int{}}}}
	entry := make(map[int]int)
	for node, call := range solution.Call {
		id := file.Nodes[node].ID
		if call == latency.OnCPU {
			out.CPUs[0].Nodes = append(out.CPUs[0].Nodes, id)
			continue
		}
		at, known := entry[call]
		if !known {
			at = len(out.FPGAs)
			entry[call] = at
			out.FPGAs = append(out.FPGAs, latencyDevice{})
		}
		out.FPGAs[at].Nodes = append(out.FPGAs[at].Nodes, id)
	}
	return json.MarshalWrite(to, &out, jsontext.WithIndent("  "))
}
