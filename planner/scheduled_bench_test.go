package planner_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

func BenchmarkChosenSchedule(b *testing.B) {
	for _, batches := range []int64{16, 512} {
		for _, recompute := range []string{costmodel.RecomputeNone, "auto"} {
			b.Run(fmt.Sprintf("8 GPUs, %d micro-batches, recompute %s", batches, recompute), func(b *testing.B) {
				problem := fullSize(b, 8, batches, costmodel.AutoSchedule)
				problem.Workload.Recompute = recompute
				for b.Loop() {
					if _, err := planner.Solve(b.Context(), problem, planner.Settings{TimeLimit: time.Hour}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
