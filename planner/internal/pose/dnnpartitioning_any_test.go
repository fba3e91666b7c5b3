package pose

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/planner/internal/solve/anyplace"
	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
)

// The largest loads in milliseconds that 45 s of simulated annealing found
// (a reference to beat, not a bound), for the files where Any soon proves its
// answer; the others are in make workloads.
func TestDNNPartitioningAny(t *testing.T) {
	for _, c := range []struct {
		file    string
		atMost  float64
		optimal bool
	}{
		{"throughput/LayerGraphs/bert24_training", 39.7895, true},
		{"throughput/OperatorGraphs/bert_l-3_inference", 21.9084, true},
		{"throughput/OperatorGraphs/bert_l-3_training", 54.2074, true},
		// Two layers that no accelerator holds together, and what they send
		// each other: contiguous parts reach 189.142.
		{"latency/OperatorGraphs/bert_l-3_inference", 186.3667, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			p := DNNPartitioning(readDNN(t, c.file))
			s, err := anyplace.Solve(context.Background(), p, graph.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Value > c.atMost*(1+1e-4) || s.Optimal() != c.optimal {
				t.Errorf("largest load %v, bound %v (%s), optimal %v; want %v", s.Value, s.LowerBound, s.Bound, s.Optimal(), c.atMost)
			}
			if _, largest, err := p.Score(s.Place); err != nil || largest != s.Value {
				t.Errorf("the score is %v, %v", largest, err)
			}
		})
	}
}

// A memory cap that binds, and a search that is cut short.
func TestDNNPartitioningAnyWithinCaps(t *testing.T) {
	p := DNNPartitioning(readDNN(t, "latency/LayerGraphs/bert24_inference"))
	s, err := anyplace.Solve(context.Background(), p, graph.Settings{TimeLimit: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	loads, largest, err := p.Score(s.Place)
	if err != nil || largest != s.Value || largest > 22.0351*(1+1e-4) || s.LowerBound > largest {
		t.Errorf("largest load %v, scored %v, %v; bound %v; contiguous parts reach 22.0351", s.Value, largest, err, s.LowerBound)
	}
	for d := range p.Kinds[0].Count {
		if loads[d].Size > p.Kinds[0].Capacity || math.IsNaN(loads[d].Time) {
			t.Errorf("device %d: %+v", d, loads[d])
		}
	}
}
