package pose

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/latency"
	"github.com/go-json-experiment/json"
)

// TestLatencyOfSplits: what greedy -computeLatency of msr-fiddle/dnn-partitioning
// says of its own split and of the experts' of BERT-24, in milliseconds.
func TestLatencyOfSplits(t *testing.T) {
	file := readDNN(t, "latency/LayerGraphs/bert24_inference")
	problem := Latency(file)
	for _, c := range []struct {
		name string
		ends []int // the last id in each accelerator, in order
		want float64
	}{
		{"greedy", []int{13, 24, 32}, 100.219},
		{"expert", []int{8, 12, 16, 20, 24, 32}, 111.937},
	} {
		problem.Kinds[0].Count = max(len(c.ends), file.Accelerators)
		call := make([]int, len(file.Nodes))
		for node := range file.Nodes {
			call[node] = slices.IndexFunc(c.ends, func(end int) bool { return file.Nodes[node].ID <= end })
		}
		if _, got, err := problem.Score(call); err != nil || math.Abs(got-c.want) > 5e-4 {
			t.Errorf("%s: %v, %v; want %v", c.name, got, err, c.want)
		}
	}
}

// TestLatency: at or below what the authors' greedy program finds (100.219,
// 268.5, 4197.06 and 416.204 ms), and proved within a second where it is.
func TestLatency(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		file    string
		most    float64
		optimal bool
	}{
		{"LayerGraphs/bert24_inference", 100.219, true},
		{"LayerGraphs/gnmt_inference", 225.648, true},
		{"LayerGraphs/resnet50_inference", 1156.882, true},
		{"OperatorGraphs/bert_l-3_inference", 409, false},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			file := readDNN(t, "latency/"+c.file)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			solution, err := latency.Solve(ctx, Latency(file), graph.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if solution.Value > c.most || solution.Gap() > 0.05 || c.optimal && !solution.Optimal() {
				t.Errorf("%v, bound %v (%s), %s", solution.Value, solution.LowerBound, solution.Bound, solution.Status)
			}
			var written bytes.Buffer
			if err := WriteLatency(&written, file, Latency(file), solution); err != nil {
				t.Fatal(err)
			}
			var read latencyResult
			if err := json.Unmarshal(written.Bytes(), &read); err != nil || read.Total != solution.Value {
				t.Errorf("%v, %v", read.Total, err)
			}
			nodes := len(read.CPUs[0].Nodes)
			for _, device := range read.FPGAs {
				nodes += len(device.Nodes)
			}
			if nodes != len(file.Nodes) || len(read.FPGAs) > file.Accelerators {
				t.Errorf("%d nodes in %d calls", nodes, len(read.FPGAs))
			}
		})
	}
}
