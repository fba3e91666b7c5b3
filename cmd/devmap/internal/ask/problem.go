package ask

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Problem returns the problem of the flags of plan or estimate for a MODEL. It leaves open what the
// user left open.
func (request *Request) Problem(model string) (*Question, error) {
	model, notes, err := Base(request, model)
	if err != nil {
		return nil, err
	}
	asked, err := request.parse(nil)
	if err != nil { // the error may concern a flag that a program does not need
		if graph, unread := ReadModel(model, ReadingOf(request)); unread == nil && request.asProgram(graph) {
			asked, err = request.parse(nil)
		}
	}
	if err != nil {
		if !request.NamesDevices() { // a file that cannot be read may name its own devices
			if _, unread := ReadModel(model, ReadingOf(request)); unread != nil {
				return nil, unread
			}
		}
		return nil, err
	}
	if asked.Graph, err = ReadModel(model, ReadingOf(request)); err != nil {
		return nil, err
	}
	asked.Graph.Warnings = append(asked.Graph.Warnings, notes...)
	if request.preset != nil {
		notes, err := request.preset.settle(request, &asked.Workload, int64(len(asked.Topology.Devices)))
		if err != nil {
			return nil, err
		}
		request.presetNotes = slices.Concat(request.presetNotes, notes, request.preset.file.differs(model, len(asked.Topology.Devices)))
	}
	if err := request.Lengths(asked.Graph); err != nil {
		return nil, err
	}
	request.native(asked.Graph, &asked.Workload)
	given := asked.Workload
	asked.Options.Asked = &given
	return asked, nil
}

// parse returns the problem of the flags, for any model. It does not read a topology file again,
// which may be a pipe, and does not measure again.
func (request *Request) parse(file *costmodel.Topology) (*Question, error) {
	workload, err := placed(request)
	if err != nil {
		return nil, err
	}
	topology := file
	if request.topology == "" && !request.measures() || file == nil {
		if topology, err = request.devices(workload.Mode, 0); err != nil {
			return nil, err
		}
	}
	pins, together, err := request.constraints()
	if err != nil {
		return nil, err
	}
	asked := &Question{request: request, Problem: planner.Problem{
		Workload: workload, Topology: topology, Pins: pins, Together: together, Unconstrained: !request.Contiguous,
		Objective: request.minimised(), Offload: request.tier(),
	}}
	if offloadsStates(request) || asked.Offload == planner.CPU && workload.Strategy.Traits().ZeroStage > 0 { // the preset's strategy
		asked.Offload, asked.Workload.HostStates = "", true
	}
	asked.Options.WholeBatch = request.cmd.Name() == "estimate"
	asked.Options.Fixed = request.fixed(topology)
	if request.preset != nil {
		presetRows(request, asked)
	}
	if asked.Options.Devices, err = request.replacements(topology, workload.Mode); err != nil {
		asked.Options.Fixed = append(asked.Options.Fixed, "gpus")
	}
	return asked, nil
}

// presetRows gives the rows of all strategies the preset's defaults for each. The program's batch
// is that of one GPU, and a row's batch that of all GPUs.
func presetRows(request *Request, asked *Question) {
	set := request.preset
	asked.Options.Under = set.under
	traits := asked.Workload.Strategy.Traits()
	if asked.Options.WholeBatch && asked.Workload.DeepSpeed == nil && (traits.Open || traits.Replicated) {
		set.workload = &asked.Workload
		set.multiply(int64(len(asked.Topology.Devices)))
		if len(request.presetNotes) > 0 {
			request.presetNotes[0] = set.said()
		}
	}
}

// placed returns the workload of the flags before the defaults of its strategy.
func placed(request *Request) (costmodel.Workload, error) {
	workload, err := request.Workload()
	if err != nil {
		return workload, err
	}
	if request.cmd.Name() == "estimate" && !request.Given("strategy") && workload.DeepSpeed == nil {
		workload.Strategy = costmodel.Auto
	}
	if !request.Given("micro-batches") && workload.MicroBatches == request.work.MicroBatches { // no file sets it
		workload.MicroBatches = 0 // the strategy's default
	}
	err = estimate.CheckPlaced(&workload)
	return workload, err
}

// fixed lists the fields that no change to this problem may set.
func (request *Request) fixed(topology *costmodel.Topology) []string {
	var fields []string
	if request.IsFront() {
		fields = append(fields, "contiguous")
	}
	if request.cmd.Name() != "plan" || request.objective != string(planner.Memory) {
		fields = append(fields, "offload")
	}
	if len(topology.Links) > 0 && request.minimised() != planner.Memory {
		fields = append(fields, "gpus") // flags cannot give links, and steps without links are meaningless
	}
	if request.kindless() {
		fields = append(fields, "gpu")
	}
	return fields
}

// copyFlags sets the flags of one command on another, with a change applied.
func copyFlags(from, to *pflag.FlagSet, change *strategy.Change) error {
	var fault error
	from.Visit(func(f *pflag.Flag) {
		if !f.Changed || slices.Contains(globals, f.Name) || changed(change, f.Name) {
			return
		}
		for _, value := range valuesOf(f) {
			if err := to.Set(f.Name, value); err != nil {
				fault = err
			}
		}
	})
	if fault != nil {
		return fault
	}
	return to.Parse(typed(change))
}

// valuesOf returns the values of a flag; a list has several.
func valuesOf(f *pflag.Flag) []string {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.GetSlice()
	}
	return []string{f.Value.String()}
}

// Again returns the flags to reproduce a row, except the workload's, as the user gave them: GPUs
// and constraints.
func (request *Request) Again() []string {
	var words []string
	for i := range flags {
		f := request.cmd.Flags().Lookup(flags[i].name)
		if !flags[i].again || f == nil || !f.Changed {
			continue
		}
		for _, value := range valuesOf(f) {
			if f.Value.Type() == "bool" {
				words = append(words, strings.TrimSuffix("--"+f.Name+"="+value, "=true"))
				continue
			}
			words = append(words, "--"+f.Name, value)
		}
	}
	return words
}

// Degrees returns the given degrees of data and tensor parallelism of a pipeline's stages: 0 if
// they were left out, below 0 for automatic ones.
func (request *Request) Degrees() (data, tensor int) {
	return int(request.work.DP), int(request.work.TP)
}

// NotForBenchmark lists the given flags that do not apply to a benchmark file.
func (request *Request) NotForBenchmark() []string {
	words := givenFlags(request, func(ours *flag) bool { return ours == nil || !ours.benchmark })
	if request.IsFront() {
		words = append(words, "--objective "+Front)
	}
	return words
}

// givenFlags lists the given flags of a kind, without those of all commands. A flag that is not in the
// table is nil.
func givenFlags(request *Request, is func(ours *flag) bool) (words []string) {
	request.cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Changed && !slices.Contains(globals, f.Name) && is(flagNamed(f.Name)) {
			words = append(words, "--"+f.Name)
		}
	})
	return words
}
