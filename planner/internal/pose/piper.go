package pose

import (
	"fmt"
	"io"
	"maps"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// Piper is the problem of cutting a Piper workload into a straight pipeline:
// one device a stage, neither data nor tensor parallelism, a configuration per
// node ("vanilla", "activation recomp"). memory is what a device holds in
// bytes, bandwidth bytes a second; the published figures take both in binary
// units, 8·2³⁰ and 25·2³⁰, whatever the file says.
//
// A crossing edge takes its bytes twice, forward and backward, from both of
// its stages (algo.cpp, getTPSForResult).
func Piper(w *benchfile.Piper, devices int, memory, bandwidth float64) (*stages.Problem, error) {
	p := &stages.Problem{Devices: min(devices, w.MicroBatches), Capacity: memory}
	send, receive := make([]float64, len(w.Edges)), make([]float64, len(w.Edges))
	names := make(map[string]int)
	for i := range w.Nodes {
		names[w.Nodes[i].Name]++
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		configs := n.Configs[1]
		if len(configs) == 0 {
			return nil, fmt.Errorf("nodes[%d] %q: no configuration without tensor parallelism, TMPCs[\"1\"]", i, n.Name)
		}
		node := stages.Node{Name: n.Name}
		if names[n.Name] > 1 { // BERT's layers are all of one name
			node.Name = fmt.Sprintf("%s (id %d)", n.Name, n.ID)
		}
		for c := range configs {
			o := &configs[c]
			node.Choices = append(node.Choices, stages.Choice{Name: o.ID, Time: o.Time, InFlight: o.PerMicroBatch, Fixed: o.Fixed})
			if !maps.Equal(o.SyncForward, configs[0].SyncForward) || !maps.Equal(o.SyncBackward, configs[0].SyncBackward) {
				return nil, fmt.Errorf("nodes[%d] %q: %q and %q synchronise their edges differently, which is not supported without tensor parallelism",
					i, n.Name, configs[0].ID, o.ID)
			}
		}
		for e, bytes := range configs[0].SyncForward {
			receive[e] = bytes
		}
		for e, bytes := range configs[0].SyncBackward {
			send[e] = bytes
		}
		p.Nodes = append(p.Nodes, node)
	}
	for i, e := range w.Edges {
		p.Edges = append(p.Edges, stages.Edge{
			From: e.From, To: e.To,
			Send: 2 * (e.Bytes + send[i]) / bandwidth, Receive: 2 * (e.Bytes + receive[i]) / bandwidth,
		})
	}
	return p, nil
}

type piperResult struct {
	Stages []piperStage `json:"stages"`
}

type piperStage struct {
	Nodes   []int    `json:"nodes"`
	Data    int      `json:"dataParallelDegree"`
	Tensor  int      `json:"tensorParallelDegree"`
	Configs [][2]any `json:"TMPCids"` // pairs of a node's id and a configuration's
}

// WritePiper writes a pipeline as Piper's program holds its own results
// (algo.cpp, to_json of Result), with the ids of the file.
func WritePiper(to io.Writer, w *benchfile.Piper, s *stages.Solution) error {
	out := piperResult{Stages: make([]piperStage, len(s.Loads))}
	for i := range out.Stages {
		out.Stages[i].Data, out.Stages[i].Tensor = 1, 1
	}
	for v := range w.Nodes {
		stage := &out.Stages[s.Stage[v]]
		stage.Nodes = append(stage.Nodes, w.Nodes[v].ID)
		stage.Configs = append(stage.Configs, [2]any{w.Nodes[v].ID, w.Nodes[v].Configs[1][s.Choice[v]].ID})
	}
	return json.MarshalWrite(to, &out)
}
