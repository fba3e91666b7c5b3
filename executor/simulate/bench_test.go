package simulate_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// BenchmarkRun simulates a million instructions, of 4 streams on each of 8 and of 64
// devices, alone and after the check.
func BenchmarkRun(b *testing.B) {
	for _, devices := range []int64{8, 64} {
		kind := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: devices, Chunks: 2, MicroBatches: (1_000_000/15/devices/devices + 1) * devices}
		prog := schedule(kind, 2, costs{forward: 100, backward: 210, send: 7, latency: 3})
		for _, checked := range []bool{false, true} {
			b.Run(fmt.Sprintf("devices=%d/checked=%v", devices, checked), func(b *testing.B) {
				for b.Loop() {
					if checked && prog.Check().Err() != nil {
						b.Fatal(prog.Check().Err())
					}
					if _, err := simulate.Run(prog); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(len(prog.Instrs)), "instrs")
			})
		}
	}
}
