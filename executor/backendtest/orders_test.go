package backendtest

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestRandomOrder: programs with random orders run to their end. Stages that hold nothing keep no
// messages.
func TestRandomOrder(t *testing.T) {
	t.Parallel()
	graph, err := Graph(Families["llama"])
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 77))
		single := Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: 1 + random.Int64N(6), Sequences: 1}
		cut, workload := randomCut(graph, single, costmodel.Workload{Mode: costmodel.Train, Seq: 8}, random)
		if job, err := cut.Job(graph, workload); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		} else if err := job.Program.Check().Err(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
