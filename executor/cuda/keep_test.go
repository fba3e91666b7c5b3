//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/internal/schedule"
	"github.com/devmap-dev/devmap/fixtures"
)

// bound is a job on a machine with kernels of the names that its recipe has; each
// does what is given.
func bound(tb testing.TB, job *executor.Job, options executor.GPUOptions, toy toyFunc) *machine {
	tb.Helper()
	of := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(tb)
	backend := made(tb, options)
	backend.instr = (*bind.Bound).Instr
	for i := range of.Program.Instrs {
		instr := fixtures.Must(of.Instr(int32(i)))(tb)
		for _, run := range instr.Runs {
			for j := range run.Kernels {
				backend.kernels[run.Kernels[j].Name] = func(call *kernel.Call) (kernel.Launch, error) {
					return func(step *kernel.Step) error { return toy(call, step) }, nil
				}
			}
		}
	}
	found := fixtures.Must(backend.Open(context.Background(), of))(tb)
	tb.Cleanup(func() {
		if err := found.Close(); err != nil || driver.Unreleased() != "" {
			tb.Errorf("%v, held is %q", err, driver.Unreleased())
		}
	})
	machine, is := found.(*machine)
	if !is {
		tb.Fatalf("%T", found)
	}
	return machine
}

// A cached instruction is the one that would be prepared, in every kind of program.
// Instructions that do the same share a cached one.
func TestCached(t *testing.T) {
	for name, job := range forms(t) {
		t.Run(name, func(t *testing.T) {
			machine := bound(t, job, executor.GPUOptions{Devices: make([]int, len(job.Program.Devices))}, func(*kernel.Call, *kernel.Step) error { return nil })
			distinct, all := make(map[*prepared]bind.Instr), 0
			for i := range machine.works.cached {
				if !schedule.Computes(machine.program.Instrs[i].Op) {
					if machine.works.cached[i] != nil {
						t.Errorf("something is kept of %s", machine.program.Line(int32(i)))
					}
					continue
				}
				all++
				instr := fixtures.Must(machine.works.instr(machine.works.bound, int32(i)))(t)
				for run := range instr.Runs {
					instr.Runs[run].Past = 0 // a step gives it
				}
				if first, known := distinct[machine.works.cached[i]]; !known {
					distinct[machine.works.cached[i]] = instr
				} else if !reflect.DeepEqual(first, instr) {
					t.Errorf("%s does something else than what it is kept with", machine.program.Line(int32(i)))
				}
				anew := fixtures.Must(machine.works.prepare(int32(i)))(t)
				for _, of := range []*prepared{machine.works.cached[i], anew} {
					of.found, of.Work = nil, nil // each has words and functions of its own
					for run := range of.runs {
						of.runs[run].launches, of.runs[run].finite = nil, nil // functions are not compared
					}
				}
				if !reflect.DeepEqual(machine.works.cached[i], anew) { //nolint:govet // its errors are compared by their fields
					t.Errorf("of %s something else is kept", machine.program.Line(int32(i)))
				}
			}
			t.Logf("%d instructions compute, %d are kept", all, len(distinct))
			if name == "generate" && len(distinct)*2 > all {
				t.Errorf("%d of %d are kept: tokens are not alike", len(distinct), all)
			}
		})
	}
}

// At Open every kernel runs once in every form it has, on zeros. Arenas are poison after
// it, and steps give each kernel the tokens that came before it.
func TestWarm(t *testing.T) {
	job := forms(t)["generate"]
	open, pasts := false, make(map[int64]bool)
	forms := make(map[string]int)
	var lock sync.Mutex // the devices' threads call it
	// Kernels that are timed are in no graph.
	clock := func(int64) func(executor.KernelTime) { return nil }
	machine := bound(t, job, executor.GPUOptions{Devices: []int{0, 0, 0}, Clock: clock}, func(call *kernel.Call, step *kernel.Step) error {
		lock.Lock()
		defer lock.Unlock()
		if open {
			pasts[step.Past] = true
			return nil
		}
		forms[string(form(nil, call))]++
		into := call.Operands[0]
		return step.Queue.Fill(into.Address, 3, into.Rows*into.Columns*into.DType.Bits()/8)
	})
	open = true
	for form, count := range forms {
		if count != 1 && count != len(machine.devices) { // of those that every device has
			t.Errorf("%d times %s", count, form)
		}
	}
	for i := range machine.works.cached {
		for run := 0; machine.works.cached[i] != nil && run < len(machine.works.cached[i].runs); run++ {
			for _, call := range machine.works.cached[i].runs[run].calls {
				if form := string(form(nil, call)); forms[form] == 0 {
					t.Errorf("%s did not run", form)
				}
			}
		}
	}
	for i, got := range contents(t, machine) {
		if !bytes.Equal(got, bytes.Repeat([]byte{executor.Poison}, len(got))) {
			t.Errorf("device %d is not poison", i)
		}
	}
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	if want := job.Workload.NewTokens; int64(len(pasts)) != want {
		t.Errorf("kernels were told of %v tokens before them, want %d kinds", pasts, want)
	}
}

// A chain of the first token clears the ends of buffers, which no kernel writes. Those of later
// tokens leave them.
func TestEnds(t *testing.T) {
	machine := bound(t, forms(t)["generate"], executor.GPUOptions{Devices: []int{0, 0, 0}}, func(*kernel.Call, *kernel.Step) error { return nil })
	scheduler, seen := machine.works.scheduler, make(map[bool]int)
	firsts := make(map[*schedule.Chain]int64)
	for _, index := range slices.Sorted(maps.Keys(machine.works.graphs.chains)) {
		chain, device, past := machine.works.graphs.chains[index], of(scheduler.DeviceOf(index)), scheduler.Past(index)
		if _, known := firsts[chain]; !known {
			firsts[chain] = past
		}
		stream := device.stream(int(machine.program.Instrs[index].Stream))
		for _, made := range machine.works.cached {
			if made == nil || made.device != device || !slices.Contains(chain.Works, made.Work) {
				continue
			}
			for _, end := range made.ends {
				want, got := bytes.Repeat([]byte{7}, int(end.Bytes)), make([]byte, end.Bytes)
				if err := machine.Write(int(machine.program.Instrs[index].Device), end.Offset, want); err != nil {
					t.Fatal(err)
				}
				if err := device.do(func() error {
					return errors.Join(chain.Give(&schedule.Args{Queue: stream, Number: 1, Past: past}), stream.Synchronize())
				}); err != nil {
					t.Fatal(err)
				}
				if err := machine.Read(int(machine.program.Instrs[index].Device), end.Offset, got); err != nil {
					t.Fatal(err)
				}
				first := past == firsts[chain]
				if first {
					clear(want)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s, %d tokens before: %d bytes at %d are %v…", machine.program.Line(index), past, end.Bytes, end.Offset, got[0])
				}
				seen[first]++
			}
		}
	}
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("seen %v", seen)
	}
}
