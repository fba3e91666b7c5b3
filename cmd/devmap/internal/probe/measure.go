// Package probe measures GPUs for a topology: their memory, its users, and devmap's own memory
// outside arenas. It also measures the rates of copies, and of kernels as steps call them.
package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/worker"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/nvml"
)

// probe is the state of the process that measures GPUs.
type probe struct {
	link    *worker.Link
	gpus    []executor.GPU
	devices []int // GPU of each device in the topology
	known   []costmodel.Device

	before map[string]holding  // by UUID, of all GPUs before this process used any
	unread error               // why that is unknown
	memory map[int]nvml.Memory // the same by GPU
	others map[int][]nvml.Process
	used   map[int]int64 // by GPU: this process's memory outside arenas
	rates  map[int]*tallies
	paths  []executor.PathRates
}

// Measure measures GPUs, one for each device of the topology, by the driver's numbers, and reports
// progress to link. The result document is the topology, and text a table of it for people.
// Argument before is the memory in use before this process used any GPU.
func Measure(ctx context.Context, link *worker.Link, before *Holdings, gpus []executor.GPU, devices []int) (document, text string, err error) {
	probe := &probe{link: link, gpus: gpus, devices: devices, before: before.gpus, unread: before.err}
	if err := probe.run(ctx); err != nil {
		return "", "", err
	}
	var topology strings.Builder
	if err := probe.write(&topology); err != nil {
		return "", "", err
	}
	return topology.String(), probe.table(), nil
}

// probeOptimizer is the optimizer of a probe's models.
var probeOptimizer = executor.Optimizer{Rate: 1e-4, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

// distinct returns the GPUs, each once.
func (probe *probe) distinct() []int {
	return slices.Compact(slices.Sorted(slices.Values(probe.devices)))
}

// run measures everything. The process's memory comes first: the process must have done nothing
// before, as in a run.
func (probe *probe) run(ctx context.Context) error {
	for _, part := range []struct {
		what string
		does func(ctx context.Context) error
	}{
		{"looking at memory", probe.look},
		{"finding what a process holds", probe.hold},
		{"timing kernels", probe.time},
		{"timing copies", probe.copies},
	} {
		probe.link.Say(&worker.Message{At: ", " + part.what})
		if err := part.does(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return nil
}

// holding is a GPU's memory, and the processes on it.
type holding struct {
	memory    nvml.Memory
	processes []nvml.Process
}

// Holdings has the memory of all GPUs.
type Holdings struct {
	gpus map[string]holding // by UUID
	err  error              // why that is unknown
}

// Look reads the memory of all GPUs. Call it before other queries: the driver takes some MiB on
// each GPU for a process that only lists them.
func Look() *Holdings {
	found, err := holdingsOf()
	return &Holdings{found, err}
}

func holdingsOf() (found map[string]holding, err error) {
	library, err := nvml.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, library.Close()) }()
	all, err := library.GPUs()
	if err != nil {
		return nil, err
	}
	found = make(map[string]holding)
	for i := range all {
		var one holding
		if one.memory, one.processes, err = all[i].Settled(); err != nil {
			return nil, err
		}
		found[all[i].UUID] = one
	}
	return found, nil
}

// look finds the GPUs' memory, and the catalogue's data of their kind.
func (probe *probe) look(context.Context) error {
	if probe.unread != nil {
		return probe.unread
	}
	probe.memory, probe.others = make(map[int]nvml.Memory), make(map[int][]nvml.Process)
	for _, gpu := range probe.distinct() {
		found, known := probe.before[probe.gpus[gpu].UUID]
		if !known {
			return fmt.Errorf("NVML knows no %s", probe.gpus[gpu].UUID)
		}
		probe.memory[gpu], probe.others[gpu] = found.memory, found.processes
	}
	for _, gpu := range probe.devices {
		probe.known = append(probe.known, catalogued(&probe.gpus[gpu], probe.memory[gpu].Total))
	}
	return nil
}

// catalogued returns the catalogue's data of a GPU, or for an unknown one the data for its compute
// capability. The capacity is unlimited: an allocation shows whether a model fits.
func catalogued(gpu *executor.GPU, total int64) costmodel.Device {
	found, err := catalogue.Find(kindOf(gpu.Name, total))
	if err != nil {
		found = catalogue.GPU{Name: gpu.Name, ComputeCapability: gpu.Capability}
	}
	found.CapacityBytes, found.ReservedBytes = 1<<49, 0
	return found.Device(costmodel.Train)
}

// topology returns the part of the topology that a job on some devices needs.
func (probe *probe) topology(devices ...int) *costmodel.Topology {
	topology := &costmodel.Topology{}
	for _, device := range devices {
		topology.Devices = append(topology.Devices, probe.known[device])
	}
	return topology
}

// hold runs a step on all devices, and finds the process's memory outside arenas on each GPU. It
// reads at the fence of the step, after which nothing is added.
func (probe *probe) hold(ctx context.Context) error {
	all := make([]int, len(probe.devices))
	for i := range all {
		all[i] = i
	}
	batches := int64(len(all))
	job, err := probeJob(usageModel(max(2, len(all))), costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16True, Batch: batches, MicroBatches: batches, Seq: 512}, probe.topology(all...))
	if err != nil {
		return err
	}
	backend, err := backends.GPU(executor.GPUOptions{Devices: probe.devices})
	if err != nil {
		return err
	}
	result, err := executor.Run(ctx, backend, job, &executor.Settings{Steps: 2, Weights: repeatedWeights(job.Graph), Optimizer: probeOptimizer})
	if err != nil {
		return err
	}
	probe.used = make(map[int]int64)
	for i := range result.GPUs {
		gpu := &result.GPUs[i]
		switch {
		case gpu.Unmeasured != "":
			return fmt.Errorf("GPU %d: %s", gpu.GPU, gpu.Unmeasured)
		case gpu.Moved != "":
			return fmt.Errorf("GPU %d: other processes moved while it was measured (%s): measure again when none does", gpu.GPU, gpu.Moved)
		}
		probe.used[gpu.GPU] = max(gpu.Ready, gpu.FenceHigh) - gpu.Before - gpu.Arenas
	}
	return nil
}

// time times kernels on every GPU: in fp32 products and updates, then those of bf16, when the GPU
// is as warm as in a run. Products for seconds come last.
func (probe *probe) time(ctx context.Context) error {
	probe.rates = make(map[int]*tallies)
	for _, gpu := range probe.distinct() {
		rates, on := new(tallies), probe.topology(slices.Index(probe.devices, gpu))
		probe.rates[gpu] = rates
		if _, err := rates.single.model(ctx, gpu, timedModels[0], timed(costmodel.Train, costmodel.FP32True, 1), singleSteps, on); err != nil {
			return err
		}
		for _, config := range timedModels {
			batch, err := rates.half.model(ctx, gpu, config, timed(costmodel.Train, costmodel.BF16True, 4), halfSteps, on)
			if err == nil {
				_, err = rates.less.model(ctx, gpu, config, timed(costmodel.Train, costmodel.BF16True, max(1, batch/4)), halfSteps, on)
			}
			if err != nil {
				return err
			}
		}
		if _, err := rates.sustained.model(ctx, gpu, wideModel, timed(costmodel.Infer, costmodel.BF16True, wideBatch), rates.half.settling(), on); err != nil {
			return err
		}
	}
	return nil
}

// timed is a workload with sequences of 2048 tokens.
func timed(mode costmodel.Mode, precision costmodel.Precision, batch int64) costmodel.Workload {
	return costmodel.Workload{Mode: mode, Precision: precision, Batch: batch, MicroBatches: 1, Seq: 2048}
}

// model times steps of a model, with the largest batch that fits, as a GPU's rates need much work. It
// returns the batch. Forwards alone take as long in sum with any batch, so that the power is steady.
func (tally *tally) model(ctx context.Context, gpu int, config string, workload costmodel.Workload, steps int64, on *costmodel.Topology) (int64, error) {
	for {
		job, err := probeJob(config, workload, on)
		if err != nil {
			return 0, err
		}
		err = tally.run(ctx, gpu, job, steps)
		var noMemory *executor.MemoryError
		if !errors.As(err, &noMemory) || workload.Batch == 1 {
			return workload.Batch, err
		}
		steps = halved(&workload, steps)
	}
}

// halved halves a batch. It returns the steps to time then: of forwards alone twice as many.
func halved(workload *costmodel.Workload, steps int64) int64 {
	workload.Batch /= 2
	if workload.Mode == costmodel.Infer {
		return 2 * steps
	}
	return steps
}

// copies times copies inside GPUs, to and from the host, and between GPUs.
func (probe *probe) copies(context.Context) (err error) {
	probe.paths, err = backends.Paths(probe.devices)
	return err
}
