package bind_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
)

// BenchmarkNew binds every instruction of a step of a deep model in many
// micro-batches.
func BenchmarkNew(b *testing.B) {
	graph := fixtures.Must(backendtest.Graph(`{"model_type":"llama","hidden_size":64,"intermediate_size":128,"num_hidden_layers":126,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":512}`))(b)
	workload := backendtest.Workloads()["recompute"]
	job := fixtures.Must(backendtest.Cut{Devices: 4, Schedule: costmodel.Interleaved, MicroBatches: 128}.Job(graph, workload))(b)
	b.ResetTimer()
	for b.Loop() {
		if _, err := bind.New(job.Graph, job.Workload, job.Recipe, job.Program); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(job.Program.Instrs)), "instrs")
}
