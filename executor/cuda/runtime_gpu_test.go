//go:build cuda && linux && cgo && amd64

package cuda

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/backendtest"
	"github.com/devmap-dev/devmap/executor/cuda/internal/driver"
	"github.com/devmap-dev/devmap/executor/cuda/internal/kernel"
	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/program"
	"github.com/devmap-dev/devmap/fixtures"
)

// nothing has the machine's instructions do nothing.
func nothing(machine *machine) {
	toyFuncs.Store(backendOf(machine), toyFunc(func(*kernel.Call, *kernel.Step) error { return nil }))
}

// TestGPUTransports sends a message of a quarter of a gibibyte by either transport, in either
// direction between two GPUs if there are two. It checks the bytes and logs the speed.
func TestGPUTransports(t *testing.T) {
	onGPU(t)
	const size = 256 << 20
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i ^ i>>9 ^ i>>17)
	}
	both := placements(t, 2)
	if len(both) > 1 {
		both = append(both, []int{both[1][1], both[1][0]})
	}
	for i := range 2 * len(both) {
		on, transport := both[i/2], []executor.Transport{executor.PeerTransport, executor.HostTransport}[i%2]
		begin := time.Now()
		machine := opened(t, made(t, executor.GPUOptions{Devices: on, Transport: transport}), parsed(t, oneMessage(size)))
		t.Logf("GPUs %v, %s: open in %v: %+v", on, transport, time.Since(begin), machine.Links())
		begin = time.Now()
		machine.links = nil
		if err := machine.tryPaths(machine.scheduler.Links); err != nil {
			t.Error(err)
		}
		t.Logf("every path was tried in %v", time.Since(begin))
		if err := machine.Write(0, 0, data); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			times := fixtures.Must(machine.Step(context.Background(), &executor.Step{Number: 1}))(t)
			t.Logf("%.1f GB/s, step included", size/times.Step.Seconds()/1e9)
		}
		got := make([]byte, size)
		if err := machine.Read(1, 0, got); err != nil || !bytes.Equal(got, data) {
			t.Errorf("GPUs %v, %s: other bytes arrived: %v", on, transport, err)
		}
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGPUFaults: Open reports every injected fault, and the GPU is as it was.
func TestGPUFaults(t *testing.T) {
	onGPU(t)
	job := forms(t)["train 1f1b"]
	of := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
	gauge := newGauge(t)
	start := gauge.last
	for _, transport := range []executor.Transport{executor.PeerTransport, executor.HostTransport} {
		for _, kind := range []executor.FaultKind{executor.FailMap, executor.CorruptPath} {
			for at := int64(1); ; at++ {
				options := executor.GPUOptions{Devices: spread(t, 2), Transport: transport, Fault: executor.Fault{Kind: kind, At: at}}
				backend := made(t, options)
				found, err := backend.Open(context.Background(), of)
				if err == nil {
					t.Logf("%s %s: %d of them", transport, kind, at-1)
					if err := found.Close(); err != nil {
						t.Error(err)
					}
					break
				}
				t.Logf("%s %s:%d: %v", transport, kind, at, err)
				var path *executor.PathError
				var driverErr *driver.Error
				if kind == executor.CorruptPath && !errors.As(err, &path) || kind == executor.FailMap && (!errors.As(err, &driverErr) || driverErr.Code != driver.OutOfMemory) {
					t.Errorf("%s %s:%d: %v", transport, kind, at, err)
				}
			}
			gauge.settled(t, start)
		}
	}
}

// TestGPUCancel: a step that is cancelled ends once the GPU has finished its work, and
// Close releases everything.
func TestGPUCancel(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	start := gauge.last
	for _, transport := range []executor.Transport{executor.PeerTransport, executor.HostTransport} {
		machine := opened(t, made(t, executor.GPUOptions{Devices: spread(t, 2), Transport: transport}), parsed(t, backendtest.PassOn(1, 200)))
		nothing(machine)
		ctx, cancel := context.WithCancel(context.Background())
		step := &executor.Step{Number: 1, Taps: make(map[executor.Tap]func() error)}
		var asked time.Time
		for i := range machine.program.Instrs {
			if instr := &machine.program.Instrs[i]; instr.Device == 1 && instr.Op == program.Forward && instr.MicroBatch == 100 {
				step.Taps[executor.Tap{Instr: int32(i)}] = func() error {
					asked = time.Now()
					cancel()
					return nil
				}
			}
		}
		_, err := machine.Step(ctx, step)
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		t.Logf("%s: ended %v behind the cancel: %v", transport, time.Since(asked), err)
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
		gauge.settled(t, start)
		cancel()
	}
}

// TestGPUHang: a kernel that does not end ends the step in time.
func TestGPUHang(t *testing.T) {
	onGPU(t)
	gauge := newGauge(t)
	start := gauge.last
	machine := opened(t, made(t, executor.GPUOptions{Devices: spread(t, 2), StallLimit: 300 * time.Millisecond, Fault: executor.Fault{Kind: executor.HangStep, At: 2}}), parsed(t, backendtest.PassOn(1, 2)))
	nothing(machine)
	if _, err := machine.Step(context.Background(), &executor.Step{Number: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := machine.Step(context.Background(), &executor.Step{Number: 2})
	var hang *executor.HangError
	if !errors.As(err, &hang) || err.Error() != hang.Error() {
		t.Errorf("%v", err)
	}
	t.Log(err)
	machine.trap.flag.Data[0] = 1 // now it ends
	machine.left = false
	for _, device := range machine.devices {
		if err := device.do(driver.Synchronize); err != nil {
			t.Error(err)
		}
	}
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
	gauge.settled(t, start)
}

// TestGPUIssue measures a step whose kernels take almost no time: a model with as many layers as
// llama-3.2-1b, each of them small. It measures the step without its kernels too, and the host's
// time for each kernel.
func TestGPUIssue(t *testing.T) {
	onGPU(t)
	holding(t)
	graph := fixtures.Must(backendtest.Graph(`{"model_type":"llama","hidden_size":256,"intermediate_size":512,"num_hidden_layers":16,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":512,"tie_word_embeddings":true}`))(t)
	train := costmodel.Workload{Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: costmodel.OneFOneB, Batch: 1, MicroBatches: 1, Seq: 16, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	generate := costmodel.Workload{Mode: costmodel.Infer, Strategy: costmodel.Pipeline, Schedule: costmodel.GPipe, Batch: 1, MicroBatches: 1, Seq: 16, NewTokens: 64, Precision: costmodel.BF16True}
	for name, wanted := range map[string]costmodel.Workload{"train": train, "64 tokens": generate} {
		for _, kernels := range []string{"as they are", "left out", "timed"} {
			job := fixtures.Must(backendtest.Job(graph, wanted, 1, backendtest.Runs(1, 1, nil)))(t)
			t.Run(name+", kernels "+kernels, func(t *testing.T) { issue(t, job, kernels) })
		}
	}
}

// spent is what the host took to give kernels of a name.
type spent struct {
	count int
	time  time.Duration
}

func issue(t *testing.T, job *executor.Job, kernels string) {
	t.Helper()
	of := fixtures.Must(bind.New(job.Graph, job.Workload, job.Recipe, job.Program))(t)
	backend := fixtures.Must(New(executor.GPUOptions{}))(t)
	begin := time.Now()
	opened := fixtures.Must(backend.Open(context.Background(), of))(t)
	t.Logf("open in %v", time.Since(begin))
	machine, is := opened.(*machine)
	if !is {
		t.Fatalf("%T", opened)
	}
	all, count, lines := make(map[string]*spent), 0, 0
	done := make(map[*prepared]bool)
	for _, made := range machine.works.cached {
		if made == nil {
			continue
		}
		lines++
		for run := range made.runs {
			count += len(made.runs[run].launches)
		}
		if !done[made] {
			done[made] = true
			made.replace(kernels, all)
		}
	}
	machine.assembleAgain(t)
	for i, device := range machine.devices { // ids, and numbers that are some
		if err := machine.Fill(i, 0, device.plan.Arena, 0); err != nil {
			t.Fatal(err)
		}
	}
	for number := range int64(6) {
		times := fixtures.Must(machine.Step(context.Background(), &executor.Step{Number: number + 1, Optimizer: executor.Optimizer{Rate: 1e-3, Beta1: .9, Beta2: .999, Epsilon: 1e-8}}))(t)
		t.Logf("%d lines that compute, %d kernels: %v, %v a line, %v a kernel; %+v", lines, count,
			times.Step, times.Step/time.Duration(lines), times.Step/time.Duration(count), times.Devices[0])
	}
	for name, spent := range all {
		if spent.count == 0 { // kernel fused has its work
			continue
		}
		t.Logf("%s: given %d times in %v each", name, spent.count, spent.time/time.Duration(spent.count))
	}
	if err := machine.Close(); err != nil {
		t.Error(err)
	}
}

// replace puts others in the place of what gives an instruction's kernels.
func (made *prepared) replace(kernels string, all map[string]*spent) {
	for i := range made.runs {
		run := &made.runs[i]
		timed := func(name string, launch kernel.Launch) kernel.Launch {
			if all[name] == nil {
				all[name] = new(spent)
			}
			of := all[name]
			return func(step *kernel.Step) error {
				begin := time.Now()
				err := launch(step)
				of.count, of.time = of.count+1, of.time+time.Since(begin)
				return err
			}
		}
		for j := range run.launches {
			switch kernels {
			case "left out":
				run.launches[j] = func(*kernel.Step) error { return nil }
			case "timed":
				run.launches[j] = timed(run.calls[j].Kernel.Name, run.launches[j])
			}
		}
		for j := range run.finite {
			if kernels == "timed" {
				run.finite[j] = timed("the search for NaN", run.finite[j])
			}
		}
	}
}
