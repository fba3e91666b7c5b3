package cpu

import (
	"context"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
)

// BenchmarkStep is a step of hardly any arithmetic: what an instruction takes
// in addition to its kernels.
func BenchmarkStep(b *testing.B) {
	wanted := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: 64, MicroBatches: 64, Seq: 2, Precision: costmodel.FP32True}
	machine, _ := loaded(b, compiled(b, "llama", wanted, 4, 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := machine.Step(context.Background(), &executor.Step{Number: 1, Optimizer: adamw}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(machine.program.Instrs)), "ns/instr")
}
