package executor

import (
	"context"
	"slices"

	"github.com/devmap-dev/devmap/executor/internal/bind"
	"github.com/devmap-dev/devmap/executor/weights"
	"github.com/devmap-dev/devmap/modelgraph"
)

// suffixes follow a parameter's name in a saved state, one for each kind of tensor.
var suffixes = map[bind.Kind]string{bind.Weight: "", bind.Master: ".master", bind.Mean: ".mean", bind.Square: ".square"}

// saver resumes the state of an earlier run, and saves what outlasts this one.
type saver struct {
	*running
	// model and state are the files of [Settings].Save, nil if they are not requested.
	model, state *weights.File
}

// params are the tensors of parameters that outlast a step, each on the device
// that owns the parameter.
func (run *saver) params() []bind.Param {
	return slices.DeleteFunc(slices.Clone(run.bound.Params()), func(param bind.Param) bool {
		_, known := suffixes[param.Kind]
		return param.Copied || !known
	})
}

// entries are the tensors of a state's file: for every parameter in module order its weight,
// followed by what the optimizer keeps.
func (run *saver) entries() []weights.Entry {
	byName := make(map[string][]bind.Param)
	for _, param := range run.params() {
		byName[param.Name] = append(byName[param.Name], param)
	}
	var entries []weights.Entry
	for _, whole := range weights.Parameters(run.job.Graph, modelgraph.F32) {
		for _, param := range byName[whole.Name] {
			entries = append(entries, weights.Entry{Name: param.Name + suffixes[param.Kind], DType: param.DType, Shape: whole.Shape})
		}
	}
	return entries
}

// moment describes the run for a state's file, after a number of steps.
func (run *saver) moment(steps int64) *weights.State {
	work, graph := run.job.Workload, run.job.Graph
	state := &weights.State{
		Model: graph.Name, Digest: graph.Digest(), Scalars: graph.Scalars(), Precision: string(work.Precision), Optimizer: work.Optimizer,
		Step: steps, Seed: run.settings.Seed,
	}
	if run.settings.Tokens != nil {
		state.Tokens = run.settings.Tokens.digest()
	}
	return state
}

// resume opens the state that the run continues from.
func (run *saver) resume() error {
	if run.settings.Resume == "" {
		return nil
	}
	state, source, err := weights.Resume(run.settings.Resume, run.moment(0), run.entries())
	if err != nil {
		return err
	}
	run.source, run.done = source, state.Step
	return nil
}

// saved begins the files that the run saves.
func (run *saver) saved() (err error) {
	if folder := run.settings.Save.Model; folder != "" {
		run.model, err = run.create(weights.CreateModel(folder, run.job.Graph, run.weightType()))
		if err != nil {
			return err
		}
	}
	if folder := run.settings.Save.State; folder != "" {
		run.state, err = run.create(weights.CreateState(folder, run.moment(run.done+run.settings.Steps), run.entries()))
	}
	return err
}

// weightType is the type of weights in use.
func (run *saver) weightType() modelgraph.DType {
	for _, param := range run.params() {
		if param.Kind == bind.Weight {
			return param.DType
		}
	}
	return modelgraph.F32
}

// save copies what is saved from the devices to the files, a stretch at a time.
func (run *saver) save(ctx context.Context) error {
	if run.model == nil && run.state == nil {
		return nil
	}
	data := make([]byte, stretch)
	for _, param := range run.params() {
		size := bytesOf(&param)
		for at := int64(0); at < size; at += stretch {
			part := data[:min(stretch, size-at)]
			if err := run.machine.Read(param.Device, param.Offset+at, part); err != nil {
				return err
			}
			if run.model != nil && param.Kind == bind.Weight {
				if err := run.model.WriteAt(param.Name, at, part); err != nil {
					return err
				}
			}
			if run.state != nil {
				if err := run.state.WriteAt(param.Name+suffixes[param.Kind], at, part); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// stretch is how many bytes of an arena are read at once.
const stretch = 1 << 20
