//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// wide is of Llama 3.2 1B's widths: what libraries choose for them they do not choose
// for small ones.
const wide = `{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":2,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":4096,"tie_word_embeddings":true}`

// TestGPUWidths is TestGPUBits with a real model's widths, and the workspace that
// products have.
func TestGPUWidths(t *testing.T) {
	onGPU(t)
	holding(t)
	before := backendtest.Workspace
	backendtest.Workspace = 32 << 20
	t.Cleanup(func() { backendtest.Workspace = before })
	graph := fixtures.Must(backendtest.Graph(wide))(t)
	infer := costmodel.Workload{Mode: costmodel.Infer, Seq: 256, Precision: costmodel.BF16True}
	generate, train := infer, infer
	generate.NewTokens = 24
	train.Mode, train.Optimizer = costmodel.Train, costmodel.AdamW
	for _, way := range []struct {
		name   string
		wanted costmodel.Workload
	}{{"generate", generate}, {"infer", infer}, {"train", train}} {
		t.Run(way.name, func(t *testing.T) {
			var want backendtest.Made
			var traced map[trace]uint64
			for _, devices := range []int{1, 2, 4} {
				cut := backendtest.Cut{Devices: devices, Schedule: costmodel.OneFOneB, MicroBatches: 1, Sequences: 4}
				backend := &tracing{Backend: shared{executor.GPUOptions{Transport: map[int]executor.Transport{1: executor.AutoTransport, 2: executor.PeerTransport, 4: executor.HostTransport}[devices]}}}
				begin := time.Now()
				got := fixtures.Must(backendtest.Run(backend, graph, way.wanted, cut, t.TempDir()))(t)
				t.Logf("%d devices: %v", devices, time.Since(begin))
				if want == nil {
					want, traced = got, backend.traces
				}
				for _, part := range slices.Sorted(maps.Keys(want)) {
					if !bytes.Equal(got[part], want[part]) {
						t.Errorf("%d devices: %s is not that of one", devices, part)
					}
				}
				tell(t, graph, backend.traces, traced)
			}
		})
	}
}

// trace is an operand that a kernel wrote, in a unit's pass behind so many tokens.
type trace struct {
	past                  int64
	unit, kernel, operand int
	name                  string
}

// tell tells what is first of what other kernels made.
func tell(t *testing.T, graph *modelgraph.Graph, got, want map[trace]uint64) {
	t.Helper()
	var differ []trace
	for one, hash := range want {
		if got[one] != hash {
			differ = append(differ, one)
		}
	}
	slices.SortFunc(differ, func(one, other trace) int {
		return slices.Compare([]int64{one.past, int64(one.unit), int64(one.kernel)}, []int64{other.past, int64(other.unit), int64(other.kernel)})
	})
	if len(differ) > 0 {
		t.Errorf("%d of %d results of kernels differ, first in %s: %+v", len(differ), len(want), graph.Units[differ[0].unit].Name, differ[0])
	}
}

// tracing hashes what the kernels of forwards and decodes write, of programs of one
// micro-batch: in step 1.
type tracing struct {
	executor.Backend
	lock   sync.Mutex
	traces map[trace]uint64
}

func (tracing *tracing) put(of trace, hash uint64) {
	tracing.lock.Lock()
	defer tracing.lock.Unlock()
	tracing.traces[of] = hash
}

type tracingMachine struct {
	executor.Machine
	*tracing
	bound *bind.Bound
}

func (tracing *tracing) Open(ctx context.Context, bound *bind.Bound) (executor.Machine, error) {
	machine, err := tracing.Backend.Open(ctx, bound)
	if err != nil {
		return nil, err
	}
	tracing.traces = make(map[trace]uint64)
	return &tracingMachine{machine, tracing, bound}, nil
}

func (machine *tracingMachine) Step(ctx context.Context, step *executor.Step) (*executor.Times, error) {
	if step.Number > 1 || machine.bound.Workload.NewTokens == 0 {
		return machine.Machine.Step(ctx, step)
	}
	tapped := *step
	if tapped.Taps = maps.Clone(step.Taps); tapped.Taps == nil {
		tapped.Taps = make(map[executor.Tap]func() error)
	}
	for i := range machine.bound.Program.Instrs {
		instr := &machine.bound.Program.Instrs[i]
		if !instr.Op.Runs() {
			continue
		}
		bound, err := machine.bound.Instr(int32(i))
		if err != nil {
			return nil, err
		}
		if len(bound.Runs) != 1 {
			continue
		}
		run := &bound.Runs[0]
		past := run.Past
		if instr.Op == program.Decode {
			past++
		}
		for k := range run.Kernels {
			at := executor.Tap{Instr: int32(i), Kernel: k + 1}
			before := tapped.Taps[at]
			tapped.Taps[at] = func() error {
				if before != nil {
					if err := before(); err != nil {
						return err
					}
				}
				return machine.hash(int(instr.Device), run, k, past)
			}
		}
	}
	return machine.Machine.Step(ctx, &tapped)
}

// hash reads what a kernel wrote. Taps of several devices may come at once.
func (machine *tracingMachine) hash(device int, run *bind.Run, kernel int, past int64) error {
	code := &run.Kernels[kernel]
	for i := range code.Operands {
		if code.Operands[i].Mode == ' ' {
			continue
		}
		area := run.Area(&code.Operands[i])
		row := make([]byte, ((area.Rows-1)*area.Stride+area.Columns)*area.DType.Bits()/8)
		if err := machine.Read(device, area.Offset, row); err != nil {
			return err
		}
		hash := fnv.New64a()
		_, _ = hash.Write(row)
		machine.put(trace{past, run.Unit, kernel, i, code.Name + " " + code.Operands[i].Role}, hash.Sum64())
	}
	return nil
}
