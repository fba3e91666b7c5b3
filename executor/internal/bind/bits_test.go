package bind_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
)

// TestBits: whatever the cut, the schedule and the order that waits allow, a
// program shows and leaves the bits that one device does without recompute; and
// whatever a kernel reads is there whole, as the type that it was written in.
func TestBits(t *testing.T) {
	random := rand.New(rand.NewPCG(12, 1))
	for _, family := range slices.Sorted(maps.Keys(backendtest.Families)) {
		graph, err := backendtest.Graph(backendtest.Families[family])
		if err != nil {
			t.Fatal(err)
		}
		all := backendtest.Workloads()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			workload := all[name]
			if workload.Mode == costmodel.Load || backendtest.Forwards(family) && (workload.Mode == costmodel.Train || workload.NewTokens > 0) {
				continue
			}
			parts := 1 + 2*random.Int64N(2)
			single := workload
			single.Recompute = ""
			one, err := backendtest.Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: parts}.Job(graph, single)
			if err != nil {
				t.Fatal(err)
			}
			want := play(t, family+" "+name, one, random)
			for range 2 {
				cut := backendtest.Cut{Devices: 1 + random.IntN(4), Schedule: backendtest.Schedules[random.IntN(4)], MicroBatches: parts, Seed: random.Uint64()}
				label := fmt.Sprintf("%s %s %+v", family, name, cut)
				job, err := cut.Job(graph, workload)
				if err != nil {
					t.Fatalf("%s: %v", label, err)
				}
				got := play(t, label, job, random)
				for key, values := range want {
					if !equal(got[key], values) {
						t.Fatalf("%s: %s differs", label, key)
					}
				}
			}
		}
	}
}
