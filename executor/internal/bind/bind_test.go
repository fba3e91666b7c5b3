package bind_test

import (
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestEvery: every compiled program binds. Every parameter that a model owns is in one place as a
// weight. In training it has the optimizer's tensors there, and at every copy. No two of a program
// overlap, and all lie in buffers that are loaded.
func TestEvery(t *testing.T) {
	every(t, func(t *testing.T, name string, job *executor.Job) {
		t.Helper()
		bound, err := bind.New(job.Graph, job.Workload, job.Recipe, job.Program)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		weights, moments, ends := make(map[string]int), make(map[string]int), make(map[int32]int64)
		for _, param := range bound.Params() {
			buffer := &job.Program.Buffers[param.Buffer]
			end := param.Offset + param.Rows*param.Columns*param.DType.Bits()/8
			if param.Offset < max(buffer.Offset, ends[param.Buffer]) || end > buffer.Offset+buffer.Bytes {
				t.Fatalf("%s: %s of %s lies at %d to %d, in %s or behind what is at %d", name, param.Kind, param.Name, param.Offset, end, buffer.Name, ends[param.Buffer])
			}
			ends[param.Buffer] = end
			if param.Kind == bind.Weight && !param.Copied {
				weights[param.Name]++
			}
			if param.Kind == bind.Weight {
				moments[param.Name]++
			}
			if param.Kind == bind.Square {
				moments[param.Name]--
			}
		}
		for index := range job.Graph.Layers {
			layer := &job.Graph.Layers[index]
			quiet := job.Recipe.Units[layer.UnitIndex].Passes
			for _, tensor := range layer.Owned() {
				full := modelgraph.FullName(layer.Name, tensor.Name)
				if weights[full] != 1 {
					t.Fatalf("%s: %s is there %d times", name, full, weights[full])
				}
				if job.Workload.Optimizer == costmodel.AdamW && !quiet && moments[full] != 0 {
					t.Fatalf("%s: %s has %d more copies than moments", name, full, moments[full])
				}
			}
		}
	})
}
