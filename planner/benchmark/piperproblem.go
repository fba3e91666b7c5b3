package benchmark

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// piperProblem is the problem that a Piper workload defines. A stage may have any data-parallel
// degree that divides the micro-batches of a batch, and any tensor-parallel degree in the file.
// Argument memory is the bytes of a device, bandwidth is in bytes a second. Arguments data and
// tensor, if not 0, fix the degrees.
//
// A crossing edge counts its bytes twice, forward and backward, for both of its stages. The
// replicas of a stage share them. A stage of d replicas sends and receives the weights of a device
// 4·(d − 1)/d times in a batch (algo.cpp, getTPSForResult and getDataParallelResyncCost).
func piperProblem(file *benchfile.Piper, devices int, memory, bandwidth float64, data, tensor int) (*stages.Problem, error) {
	problem := &stages.Problem{
		Devices: devices, Replicas: file.MicroBatches, Capacity: memory,
		Resync: 4 / float64(file.MicroBatches) / bandwidth,
	}
	for degree := 1; degree <= file.MicroBatches; degree++ {
		if file.MicroBatches%degree == 0 {
			problem.Data = append(problem.Data, degree)
		}
	}
	degrees := make(map[int]bool)
	for i := range file.Nodes {
		for degree := range file.Nodes[i].Configs {
			degrees[degree] = true
		}
	}
	problem.Tensor = slices.Sorted(maps.Keys(degrees))
	switch {
	case data > 0 && !slices.Contains(problem.Data, data):
		return nil, fmt.Errorf("%d replicas of a stage do not share the %d micro-batches of a batch evenly: %s", data, file.MicroBatches, nearest(data, problem.Data))
	case tensor > 0 && !degrees[tensor]:
		return nil, fmt.Errorf("no node has a configuration for tensor parallelism of degree %d, TMPCs[\"%d\"]: the file has %s", tensor, tensor, list(problem.Tensor))
	case max(data, 1)*max(tensor, 1) > devices:
		return nil, fmt.Errorf("a stage of %d × %d devices is more than the %d that there are", max(data, 1), max(tensor, 1), devices)
	}
	if data > 0 {
		problem.Data = []int{data}
	}
	if tensor > 0 {
		problem.Tensor = []int{tensor}
	}
	return problem, addParts(problem, file, bandwidth)
}

// nearest names the sorted numbers on both sides of to. The first number is below to.
func nearest(to int, among []int) string {
	at, _ := slices.BinarySearch(among, to)
	if at == len(among) {
		return fmt.Sprintf("%d does", among[at-1])
	}
	return fmt.Sprintf("%d and %d do", among[at-1], among[at])
}

// list formats numbers with commas between them.
func list(numbers []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

func addParts(problem *stages.Problem, file *benchfile.Piper, bandwidth float64) error {
	for _, edge := range file.Edges {
		bytes := slices.Repeat([]float64{2 * edge.Bytes / bandwidth}, len(problem.Tensor))
		problem.Edges = append(problem.Edges, stages.Edge{From: edge.From, To: edge.To, Send: bytes, Receive: slices.Clone(bytes)})
	}
	name := piperNames(file)
	for i := range file.Nodes {
		node := stages.Node{Name: name[i], Choices: make([][]stages.Choice, len(problem.Tensor))}
		for at, degree := range problem.Tensor {
			configs := file.Nodes[i].Configs[degree]
			for config := range configs {
				way := &configs[config]
				node.Choices[at] = append(node.Choices[at], stages.Choice{
					Name: way.ID, Time: way.Time, Weights: way.Parameters, InFlight: way.PerMicroBatch, Fixed: way.Fixed,
				})
				if !maps.Equal(way.SyncForward, configs[0].SyncForward) || !maps.Equal(way.SyncBackward, configs[0].SyncBackward) {
					return fmt.Errorf("nodes[%d] %q: %q and %q synchronise their edges differently on %d devices, which is not supported",
						i, file.Nodes[i].Name, configs[0].ID, way.ID, degree)
				}
			}
			if len(configs) == 0 && len(problem.Tensor) == 1 {
				return fmt.Errorf("nodes[%d] %q: no configuration for tensor parallelism of degree %d, TMPCs[\"%d\"]", i, file.Nodes[i].Name, degree, degree)
			}
			if len(configs) == 0 {
				continue
			}
			for edge, bytes := range configs[0].SyncForward {
				problem.Edges[edge].Receive[at] += 2 * bytes / bandwidth
			}
			for edge, bytes := range configs[0].SyncBackward {
				problem.Edges[edge].Send[at] += 2 * bytes / bandwidth
			}
		}
		problem.Nodes = append(problem.Nodes, node)
	}
	return nil
}

// piperNames adds ids to names that several nodes have: all of BERT's layers have the same name.
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
	Configs [][2]any `json:"TMPCids"` // pairs of a node's id and a configuration's id
}

// writePipeline writes a plan in the format of Piper's results (algo.cpp, to_json of Result), with
// the ids of the file.
func writePipeline(to io.Writer, file *benchfile.Piper, plan *stages.Plan) error {
	out := piperResult{Stages: make([]piperStage, len(plan.Stages))}
	for i, stage := range plan.Stages {
		out.Stages[i].Data, out.Stages[i].Tensor = stage.Data, stage.Tensor
	}
	for node := range file.Nodes {
		stage := &out.Stages[plan.Stage[node]]
		stage.Nodes = append(stage.Nodes, file.Nodes[node].ID)
		stage.Configs = append(stage.Configs, [2]any{file.Nodes[node].ID, file.Nodes[node].Configs[stage.Tensor][plan.Choice[node]].ID})
	}
	return json.MarshalWrite(to, &out)
}
