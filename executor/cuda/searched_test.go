//go:build cuda && linux && cgo && amd64

package cuda

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/fixtures"
)

// billion is the shape of Llama 3.2 1B.
const billion = `{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":128256,"tie_word_embeddings":true}`

// TestGPUSearched tells what a thread takes for a kernel: of steps of so few tokens that
// the GPU waits for it; and what a step takes with the search for NaN and without.
func TestGPUSearched(t *testing.T) {
	onGPU(t)
	graph := fixtures.Must(backendtest.Graph(billion))(t)
	for _, shape := range []struct {
		wanted    costmodel.Workload
		sequences int64
	}{
		{costmodel.Workload{Mode: costmodel.Train, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}, 1},
		{costmodel.Workload{Mode: costmodel.Infer, Seq: 16, NewTokens: 16, Precision: costmodel.BF16True}, 1},
		{costmodel.Workload{Mode: costmodel.Train, Seq: 2048, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}, 4},
	} {
		begin := time.Now()
		job := fixtures.Must(backendtest.Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: 1, Sequences: shape.sequences}.Job(graph, shape.wanted))(t)
		of := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
		compiled := time.Since(begin)
		found := fixtures.Must(shared{}.Open(context.Background(), of))(t)
		machine, is := found.(*machine)
		if !is {
			t.Fatalf("%T", found)
		}
		t.Logf("%s of %d x %d: compiled in %v, open in %v more", shape.wanted.Mode, shape.sequences, shape.wanted.Seq, compiled, time.Since(begin)-compiled)
		if err := machine.Fill(0, 0, job.Program.Devices[0].Arena, 0); err != nil {
			t.Fatal(err)
		}
		machine.tell(t, "with the search for NaN")
		for _, cached := range machine.works.cached {
			for run := 0; cached != nil && run < len(cached.runs); run++ {
				cached.runs[run].finite = nil
			}
		}
		machine.assembleAgain(t)
		machine.tell(t, "without")
		machine.issued(t)
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// issued tells what the thread takes to give a kernel, by its name, in steps whose
// kernels are given far ahead of the GPU.
func (machine *machine) issued(t *testing.T) {
	t.Helper()
	took := make(map[string][]time.Duration)
	wrapped := make(map[*prepared]bool)
	for _, cached := range machine.works.cached {
		for run := 0; cached != nil && !wrapped[cached] && run < len(cached.runs); run++ {
			for i, launch := range cached.runs[run].launches {
				name := cached.runs[run].calls[i].Kernel.Name
				cached.runs[run].launches[i] = func(step *kernel.Step) error {
					begin := time.Now()
					err := launch(step)
					took[name] = append(took[name], time.Since(begin))
					return err
				}
			}
		}
		wrapped[cached] = true
	}
	machine.assembleAgain(t)
	begin := time.Now()
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1, Optimizer: executor.Optimizer{Rate: 1e-6, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}); err != nil {
		t.Error(err)
	}
	t.Logf("a step of %v", time.Since(begin))
	for _, name := range slices.Sorted(maps.Keys(took)) {
		times := took[name]
		slices.Sort(times)
		t.Logf("%-20s %5d times: median %v, most %v", name, len(times), times[len(times)/2], times[len(times)-1])
	}
}

// tell tells what steps take.
func (machine *machine) tell(t *testing.T, what string) {
	t.Helper()
	kernels, searches := 0, 0
	for _, cached := range machine.works.cached {
		for run := 0; cached != nil && run < len(cached.runs); run++ {
			kernels += len(cached.runs[run].launches)
			searches += len(cached.runs[run].finite)
		}
	}
	for number := range 5 {
		times, err := machine.Step(context.Background(), &executor.Step{Number: int64(number) + 1, Optimizer: executor.Optimizer{Rate: 1e-6, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}})
		if err != nil {
			t.Error(err)
			return
		}
		of := times.Devices[0]
		t.Logf("%s: %d kernels, %d searches in %v (%.2f µs each): forward %v, backward %v, decode %v, update %v, waiting %v", what, kernels, searches, times.Step,
			float64(times.Step.Microseconds())/float64(kernels+searches), of.Forward, of.Backward, of.Decode, of.Update, of.Wait)
	}
}
