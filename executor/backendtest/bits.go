package backendtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/recipe"
	"github.com/devmap-dev/devmap/executor"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// Workloads returns all ways to run a small model, by name.
func Workloads() map[string]costmodel.Workload {
	train := costmodel.Workload{Mode: costmodel.Train, Seq: 6, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW}
	full, mixed, single := train, train, train
	full.Recompute = costmodel.RecomputeFull
	mixed.Precision = costmodel.BF16Mixed
	single.Precision, single.Optimizer = costmodel.FP32True, costmodel.SGD
	infer := costmodel.Workload{Mode: costmodel.Infer, Seq: 6, Precision: costmodel.FP32True}
	generate, load := infer, infer
	generate.NewTokens = 3
	load.Mode = costmodel.Load
	workloads := map[string]costmodel.Workload{"train": train, "recompute": full, "mixed": mixed, "fp32": single, "infer": infer, "generate": generate, "load": load}
	for _, way := range []string{"infer", "generate"} {
		brain := workloads[way]
		brain.Precision = costmodel.BF16True
		workloads[way+" bf16"] = brain
	}
	return workloads
}

// Schedules are the schedules of a pipeline; "" stands for a device map.
var Schedules = []costmodel.ScheduleKind{costmodel.OneFOneB, costmodel.GPipe, costmodel.Interleaved, "", costmodel.ZBH1, costmodel.ZBV, costmodel.VHalf, costmodel.VMin}

// Cut says on which devices and in what order a model runs.
type Cut struct {
	Devices      int
	Schedule     costmodel.ScheduleKind
	MicroBatches int64
	Sequences    int64  // of a micro-batch; 0: two
	Seed         uint64 // of the borders
}

// Job compiles the graph for this cut.
func (cut Cut) Job(graph *modelgraph.Graph, workload costmodel.Workload) (*executor.Job, error) {
	workload.MicroBatches, workload.Batch = cut.MicroBatches, cmp.Or(cut.Sequences, 2)*cut.MicroBatches
	random := rand.New(rand.NewPCG(cut.Seed, uint64(cut.Devices)))
	place := Runs(cut.Devices, 1, random)
	workload.Strategy, workload.Schedule = costmodel.Pipeline, cut.Schedule
	switch {
	case cut.Schedule == "":
		workload.Strategy, place = costmodel.DeviceMap, RandomDevices(cut.Devices, random)
	case cut.Schedule.Loops():
		workload.VirtualStages, place = 2, Runs(cut.Devices, 2, random)
	case cut.Schedule.Vee():
		place = Vee(cut.Devices, random)
		if cut.Devices == 1 {
			workload.Schedule = costmodel.ZBH1 // a V needs two devices
		}
	}
	return Job(graph, workload, cut.Devices, place)
}

// Bits runs every family in every way on one device, and again with random cuts
// from a seed. Losses, generated tokens, logits, hidden states, gradients and the
// optimizer's state must be equal bit for bit, with recompute and without. Every
// planned byte of an arena must have been touched. Bits writes below folder. The
// error lists all differences, each with the command that repeats it.
func Bits(backend executor.Backend, folder string, cuts int, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 12))
	var all []error
	for _, family := range slices.Sorted(maps.Keys(Families)) {
		graph, err := Graph(Families[family])
		if err != nil {
			return err
		}
		workloads := Workloads()
		for _, way := range slices.Sorted(maps.Keys(workloads)) {
			workload := workloads[way]
			if !computes(family, &workload) {
				continue
			}
			workload.Seq = 2 + random.Int64N(8)
			if workload.NewTokens > 0 {
				workload.NewTokens = 1 + random.Int64N(8)
			}
			single := Cut{Devices: 1, Schedule: costmodel.OneFOneB, MicroBatches: 1 + random.Int64N(4), Sequences: 1 + random.Int64N(3)}
			alone := workload
			alone.Recompute = ""
			want, err := Run(backend, graph, alone, single, folder)
			if err != nil {
				all = append(all, fmt.Errorf("%s %s of %d tokens, %+v: %w", family, way, workload.Seq, single, err))
			}
			for range cuts {
				cut, workload := randomCut(graph, single, workload, random)
				got, err := Run(backend, graph, workload, cut, folder)
				if err == nil {
					err = want.differs(got)
				}
				if err != nil {
					all = append(all, fmt.Errorf("%s %s of %d tokens, %+v: %w", family, way, workload.Seq, cut, err))
				}
			}
		}
	}
	return errors.Join(all...)
}

// computes reports that a family has results in this way to run.
func computes(family string, workload *costmodel.Workload) bool {
	if workload.Mode == costmodel.Load {
		return false
	}
	return !Forwards(family) || workload.Mode != costmodel.Train && workload.NewTokens == 0
}

// randomCut returns random devices and a random schedule for the batches of a run on one device.
// Training may also get an order of its own, recompute some blocks only, and offload activations.
func randomCut(graph *modelgraph.Graph, single Cut, workload costmodel.Workload, random *rand.Rand) (Cut, costmodel.Workload) {
	cut := Cut{1 + random.IntN(4), Schedules[random.IntN(len(Schedules))], single.MicroBatches, single.Sequences, random.Uint64()}
	if workload.Mode != costmodel.Train {
		return cut, workload
	}
	if kind := cut.Schedule; random.IntN(3) == 0 && kind != "" && (cut.Devices > 1 || !kind.Chunked()) {
		if kind.Vee() {
			cut.Devices = min(cut.Devices, len(graph.Units)/2) // all hold units
		}
		cut.Schedule = RandomOrder(int64(cut.Devices), cut.MicroBatches, kind, random)
	}
	if workload.Recompute == costmodel.RecomputeFull && random.IntN(2) == 0 {
		workload.Recompute = someBlocks(graph, random)
	}
	if random = rand.New(rand.NewPCG(cut.Seed, 3)); cut.Schedule != "" && random.IntN(2) == 0 {
		workload.OffloadActivations = costmodel.OffloadAll
		if blocks := someBlocks(graph, random); blocks != costmodel.RecomputeNone && random.IntN(2) == 0 {
			workload.OffloadActivations = blocks
		}
	}
	return cut, workload
}

// someBlocks lists random blocks.
func someBlocks(graph *modelgraph.Graph, random *rand.Rand) string {
	var again []bool
	for unit := range graph.Units {
		if len(graph.Units[unit].Exec) > 1 {
			again = append(again, random.IntN(2) == 0)
		}
	}
	return costmodel.RecomputeOf(again)
}

// Made is the output of a run, each part as bytes: files of tensors, and the text of losses and
// tokens.
type Made map[string][]byte

// differs returns an error that names the parts that are not the same.
func (want Made) differs(got Made) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(want[name], got[name]) {
			all = append(all, fmt.Errorf("%s is not that of one device", name))
		}
	}
	return errors.Join(all...)
}

// Run runs two steps and returns their output. An error is one of the run, or names bytes of an
// arena that were touched and not planned, or planned and not touched.
func Run(backend executor.Backend, graph *modelgraph.Graph, workload costmodel.Workload, cut Cut, folder string) (_ Made, err error) {
	job, err := cut.Job(graph, workload)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(folder, "run")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	settings := &executor.Settings{Steps: 2, Seed: 12, Weights: weights.Random(graph, 12)}
	settings.Dump.Hidden = filepath.Join(dir, "hidden")
	if headed(job) {
		settings.Dump.Logits = filepath.Join(dir, "logits")
	}
	if workload.Mode == costmodel.Train {
		settings.Optimizer = executor.Optimizer{Rate: 1e-3, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Decay: 0.01, Clip: 0.5}
		settings.Dump.Grads = filepath.Join(dir, "grads")
		settings.Save.State = filepath.Join(dir, "state")
	}
	result, err := executor.Run(context.Background(), backend, job, settings)
	if err != nil {
		return nil, err
	}
	if err := planned(result); err != nil {
		return nil, err
	}
	out := Made{"tokens": fmt.Append(nil, result.Tokens)}
	for index := range result.Steps {
		out[fmt.Sprint("loss of step ", index+1)] = fmt.Append(nil, result.Steps[index].Loss)
	}
	for _, name := range []string{"hidden", "logits", "grads", "state/state.safetensors"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
		out[name] = data
	}
	return out, nil
}

// headed reports whether a model makes logits.
func headed(job *executor.Job) bool {
	for index := range job.Recipe.Units {
		if slices.ContainsFunc(job.Recipe.Units[index].Code.Tensors, func(tensor recipe.Tensor) bool { return strings.HasPrefix(tensor.Name, "logits") }) {
			return true
		}
	}
	return false
}

// planned compares the touched bytes of arenas with the plan.
func planned(result *executor.Result) error {
	var all []error
	for index := range result.Devices {
		device := &result.Devices[index]
		if device.Stray > 0 {
			all = append(all, fmt.Errorf("device %d: %d bytes lost their poison that no buffer has", device.Device, device.Stray))
		}
		for _, gap := range device.Gaps {
			if gap.Missed {
				all = append(all, fmt.Errorf("device %d: %d bytes of %s were never written: %s", device.Device, gap.Bytes, gap.Buffer, gap.Reason))
			}
		}
		for _, region := range device.Regions {
			if region.Name != "workspace" && region.TouchedBytes != region.PlannedBytes {
				all = append(all, fmt.Errorf("device %d: %d bytes of %s were touched, and %d planned", device.Device, region.TouchedBytes, region.Name, region.PlannedBytes))
			}
		}
	}
	return errors.Join(all...)
}
