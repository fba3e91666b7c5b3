package dags

import (
	"encoding/json"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// The form of msr-fiddle/dnn-partitioning (README, "Input format").
type (
	fileOf struct {
		MaxSize float64    `json:"maxSizePerFPGA"`
		Devices int        `json:"maxFPGAs"`
		CPUs    int        `json:"maxCPUs"`
		Nodes   []fileNode `json:"nodes"`
		Edges   []fileEdge `json:"edges"`
	}
	fileNode struct {
		ID        int     `json:"id"`
		Name      string  `json:"name"`
		Supported bool    `json:"supportedOnFpga"`
		CPU       float64 `json:"cpuLatency"`
		Time      float64 `json:"fpgaLatency"`
		Backward  bool    `json:"isBackwardNode"`
		Size      float64 `json:"size"`
	}
	fileEdge struct {
		From int     `json:"sourceId"`
		To   int     `json:"destId"`
		Cost float64 `json:"cost"`
	}
)

// File is a drawn problem as a file of dnn-partitioning, for other programs.
func File(problem *graph.Problem) []byte {
	out := fileOf{MaxSize: problem.Kinds[0].Capacity, Devices: problem.Kinds[0].Count, Edges: []fileEdge{}}
	for i, node := range problem.Nodes {
		out.Nodes = append(out.Nodes, fileNode{ID: i, Name: node.Name, Supported: true, CPU: node.Time[0], Time: node.Time[0], Size: node.Size})
	}
	for _, edge := range problem.Edges {
		out.Edges = append(out.Edges, fileEdge{edge[0], edge[1], problem.Nodes[edge[0]].Transfer})
	}
	data, err := json.Marshal(&out)
	if err != nil {
		panic(err) // no number that is drawn is infinite
	}
	return append(data, '\n')
}
