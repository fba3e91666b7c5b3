package simulate_test

import (
	"fmt"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/simulate"
)

// BenchmarkRun plays a million instructions, of 4 streams on each of 8 and of 64
// devices.
func BenchmarkRun(b *testing.B) {
	for _, devices := range []int64{8, 64} {
		kind := costmodel.Schedule{Kind: costmodel.Interleaved, Stages: devices, Chunks: 2, MicroBatches: 1_000_000 / 16 / devices / devices * devices}
		prog := schedule(kind, 2, costs{forward: 100, backward: 210, send: 7, latency: 3})
		b.Run(fmt.Sprintf("devices=%d", devices), func(b *testing.B) {
			for b.Loop() {
				if _, err := simulate.Run(prog); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(prog.Instrs)), "instrs")
		})
	}
}
