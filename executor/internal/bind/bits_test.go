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
		all := workloads()
		for _, name := range slices.Sorted(maps.Keys(all)) {
			workload := all[name]
			if workload.Mode == costmodel.Load || backendtest.Forwards(family) && (workload.Mode == costmodel.Train || workload.NewTokens > 0) {
				continue
			}
			parts := 1 + 2*random.Int64N(2)
			single := workload
			single.Recompute = ""
			one, err := draw(graph, single, costmodel.OneFOneB, 1, parts)
			if err != nil {
				t.Fatal(err)
			}
			want := play(t, family+" "+name, one, random)
			for range 2 {
				devices, schedule := 1+random.IntN(4), schedules[random.IntN(len(schedules))]
				label := fmt.Sprintf("%s %s, %d devices, %s, %d micro-batches", family, name, devices, schedule, parts)
				job, err := draw(graph, workload, schedule, devices, parts)
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
