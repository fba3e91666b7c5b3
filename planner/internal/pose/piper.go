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
func Piper(file *benchfile.Piper, devices int, memory, bandwidth float64) (*stages.Problem, error) {
	problem := &stages.Problem{Devices: min(devices, file.MicroBatches), Capacity: memory}
	send, receive := make([]float64, len(file.Edges)), make([]float64, len(file.Edges))
	name := piperNames(file)
	for i := range file.Nodes {
		n := &file.Nodes[i]
		configs := n.Configs[1]
		if len(configs) == 0 {
			return nil, fmt.Errorf("nodes[%d] %q: no configuration without tensor parallelism, TMPCs[\"1\"]", i, n.Name)
		}
		node := stages.Node{Name: name[i]}
		for config := range configs {
			way := &configs[config]
			node.Choices = append(node.Choices, stages.Choice{Name: way.ID, Time: way.Time, InFlight: way.PerMicroBatch, Fixed: way.Fixed})
			if !maps.Equal(way.SyncForward, configs[0].SyncForward) || !maps.Equal(way.SyncBackward, configs[0].SyncBackward) {
				return nil, fmt.Errorf("nodes[%d] %q: %q and %q synchronise their edges differently, which is not supported without tensor parallelism",
					i, n.Name, configs[0].ID, way.ID)
			}
		}
		for edge, bytes := range configs[0].SyncForward {
			receive[edge] = bytes
		}
		for edge, bytes := range configs[0].SyncBackward {
			send[edge] = bytes
		}
		problem.Nodes = append(problem.Nodes, node)
	}
	for i, edge := range file.Edges {
		problem.Edges = append(problem.Edges, stages.Edge{
			From: edge.From, To: edge.To,
			Send: 2 * (edge.Bytes + send[i]) / bandwidth, Receive: 2 * (edge.Bytes + receive[i]) / bandwidth,
		})
	}
	return problem, nil
}

// piperNames tells nodes of one name apart by their ids: BERT's layers are all
// of one.
func piperNames(file *benchfile.Piper) []string {
	count, names := make(map[string]int), make([]string, len(file.Nodes))
	for i := range file.Nodes {
		count[file.Nodes[i].Name]++
	}
	for i := range file.Nodes {
		names[i] = file.Nodes[i].Name
		if count[names[i]] > 1 {
			names[i] = fmt.Sprintf("%s (id %d)", names[i], file.Nodes[i].ID)
		}
	}
	return names
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
func WritePiper(to io.Writer, file *benchfile.Piper, solution *stages.Solution) error {
	out := piperResult{Stages: make([]piperStage, len(solution.Loads))}
	for i := range out.Stages {
		out.Stages[i].Data, out.Stages[i].Tensor = 1, 1
	}
	for node := range file.Nodes {
		stage := &out.Stages[solution.Stage[node]]
		stage.Nodes = append(stage.Nodes, file.Nodes[node].ID)
		stage.Configs = append(stage.Configs, [2]any{file.Nodes[node].ID, file.Nodes[node].Configs[1][solution.Choice[node]].ID})
	}
	return json.MarshalWrite(to, &out)
}
