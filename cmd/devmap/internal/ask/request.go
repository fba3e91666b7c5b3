package ask

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner"
)

// Request has the values of a command's flags.
type Request struct {
	GPUs
	Placement
	work                costmodel.Workload
	serving             costmodel.Serving
	tensorSplit         []string
	gpuLayers           int64
	dsConfig, lengths   string
	presetNotes         []string
	preset              *presetting  // nil: no --preset
	trainer             *trainerRead // of --preset FILE, after reading
	JSON, Explain       bool
	Force, Try          bool
	Output, For, Emit   string
	Report              string
	Transformers        string
	Dims                []string
	Model, ScheduleFile string
	Trace, Calibration  string
	TimeLimit           time.Duration
	Run                 Run
	Generation          Generation
	Watch               Watch
	// Implied is the flag that implies --mode train; empty if there is none.
	Implied string
}

// New adds its flags to a command.
func New(cmd *cobra.Command) *Request {
	request := &Request{GPUs: GPUs{cmd: cmd}}
	which := commands[cmd.Name()]
	for i := range flags {
		if flags[i].on&which != 0 {
			flags[i].add(cmd, which, request)
		}
	}
	cmd.Flags().SetNormalizeFunc(ownName)
	return request
}

// ReadingOf returns how to read the model, from the flags.
func ReadingOf(request *Request) Reading { return Reading{request.Transformers, request.Dims} }

// Given reports that the user gave a flag with one of these names.
func (request *Request) Given(names ...string) bool { return given(request.cmd.Flags(), names...) }

// Workload returns the workload of the flags.
func (request *Request) Workload() (costmodel.Workload, error) {
	for i := range flags {
		if f := &flags[i]; f.counts {
			if n, ok := f.at(request).(*int64); ok && *n < 1 {
				return request.work, out.Usagef("--%s %d: it must be 1 or more", f.name, *n)
			}
		}
	}
	if request.Given("mem-fraction") && !(request.work.MemFraction > 0 && request.work.MemFraction <= 1) {
		return request.work, out.Usagef("--mem-fraction %v: it is a part of a GPU's memory, above 0 and up to 1", request.work.MemFraction)
	}
	if request.Given("label-tokens") && request.work.LabelTokens == 0 {
		return request.work, out.Usagef("--label-tokens 0: a step without labels trains nothing: give the label tokens of a sample, or leave it out")
	}
	if err := readLengths(request); err != nil {
		return request.work, err
	}
	workload, err := request.configured()
	if err != nil {
		return workload, err
	}
	if err := layPreset(request, &workload); err != nil {
		return workload, err
	}
	if strategy, runtime := estimate.Native(nil); workload.Runtime == runtime && !request.Given("strategy") {
		workload.Strategy = strategy // the engine's own strategy
	}
	err = layGrid(request, &workload)
	return workload, err
}

// layGrid sets the strategy of an engine with many degrees: a pipeline, or for torchtitan without
// degrees, FSDP2 as in its preset.
func layGrid(request *Request, workload *costmodel.Workload) error {
	titan := workload.Runtime == "torchtitan"
	switch {
	case workload.Runtime != "megatron" && !titan:
		return nil
	case titan && workload.EP.Count() == 1 && workload.EP != costmodel.AutoDegree && !request.Given("dp", "tp", "pp", "cp", "schedule", "expert-capacity") && (!request.Given("strategy") || workload.Strategy != costmodel.Pipeline):
		workload.Runtime = ""
		if !request.Given("strategy") {
			workload.Strategy = costmodel.FSDP
		}
		if !request.Given("preset") {
			workload.Preset = "torchtitan"
			set := &presetting{workload: workload, given: isSet(request, workload)}
			notes, err := set.lay(request)
			request.presetNotes, request.preset = notes, set
			return err
		}
	case !request.Given("strategy"):
		workload.Strategy = costmodel.Pipeline
	case workload.Strategy == costmodel.Pipeline:
		workload.DP = fewestReplicas(workload)
	}
	return nil
}

// fewestReplicas returns the replicas of a pipeline that was asked for without degrees: stages take
// the GPUs. Parts of experts and of weights need replicas, and then the engine's own rule holds.
func fewestReplicas(workload *costmodel.Workload) costmodel.Degree {
	open := slices.Contains([]costmodel.Degree{workload.TP, workload.CP}, costmodel.AutoDegree)
	if open || workload.DP != 0 || workload.PP != 0 || workload.EP > 1 || workload.EP == costmodel.AutoDegree || workload.ShardDegree > 1 {
		return workload.DP
	}
	return 1
}

// maxLengthsBytes is the largest size of a file of lengths: a million lengths take about 5 MiB.
const maxLengthsBytes = 64 << 20

// isThere reports that a path exists.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// readLengths reads --lengths: MEAN,MAX, or a file.
func readLengths(request *Request) error {
	if request.lengths == "" {
		return nil
	}
	lengths := &request.work.Lengths
	first, second, both := strings.Cut(request.lengths, ",")
	_, notMean := strconv.ParseFloat(strings.TrimSpace(first), 64)
	_, notMax := strconv.ParseFloat(strings.TrimSpace(second), 64)
	if both && notMean == nil && notMax == nil {
		if err := lengths.Read("", []byte(request.lengths)); err != nil {
			return out.Usagef("--lengths %q: %w; give MEAN,MAX in tokens", request.lengths, err)
		}
	} else {
		if !both && notMean == nil && !isThere(request.lengths) {
			return out.Usagef("--lengths %s: one number is no distribution: give MEAN,MAX in tokens, or the file with the lengths", request.lengths)
		}
		text, err := modelgraph.ReadSmall(request.lengths, "lengths of samples", maxLengthsBytes)
		if err != nil {
			return err
		}
		if err := lengths.Read(out.OneLine(request.lengths), text); err != nil {
			return out.Usagef("--lengths: %w", err)
		}
	}
	return nil
}

// Alone returns the workload for a model without named GPUs. A program has one GPU.
func (request *Request) Alone(graph *modelgraph.Graph, workload costmodel.Workload) costmodel.Workload {
	request.native(graph, &workload)
	if _, runtime := estimate.Native(nil); workload.Runtime == runtime {
		workload.World = 1
	}
	return workload
}

// asProgram reports a model that is an engine's program, if the user named no engine, and selects
// that engine.
func (request *Request) asProgram(graph *modelgraph.Graph) bool {
	strategy, runtime := estimate.Native(graph)
	if runtime == "" || request.Given("strategy", "runtime") {
		return false
	}
	request.work.Strategy, request.work.Runtime = strategy, runtime
	return true
}

// native sets the engine of a model that is its program, if the user named none.
func (request *Request) native(graph *modelgraph.Graph, workload *costmodel.Workload) {
	if strategy, runtime := estimate.Native(graph); runtime != "" && !request.Given("strategy", "runtime") {
		workload.Runtime = runtime
		if !workload.Strategy.Traits().Open {
			workload.Strategy = strategy
		}
	}
}

// Lengths refuses lengths that the model does not have.
func (request *Request) Lengths(graph *modelgraph.Graph) error {
	if request.work.Mode == costmodel.Load {
		return nil
	}
	return estimate.CheckLengths(graph, request.Given("seq"), request.Given("target-seq"))
}

// Refuse reports unknown values, values that this version does not support, and flags that
// contradict each other.
func (request *Request) Refuse() error {
	set := request.cmd.Flags()
	if err := checkValues(set); err != nil {
		return err
	}
	implyTraining(request)
	return cmp.Or(request.normalise(), checkZeros(set, commands[request.cmd.Name()]), request.refuseUnconstrained(), request.refuseOffload(), request.refuseSearch())
}

// checkZeros refuses values below 1 of flags that count something.
func checkZeros(set *pflag.FlagSet, on command) error {
	for i := range flags {
		if flags[i].leftOut == "" {
			continue
		}
		if f := set.Lookup(flags[i].name); f != nil && f.Changed && (f.Value.String() == "0" || strings.HasPrefix(f.Value.String(), "-")) {
			return out.Usagef("--%s: %s is not 1 or more (left out: %s)", f.Name, f.Value, cmp.Or(flags[i].leftOutOn[on], flags[i].leftOut))
		}
	}
	return nil
}

// notBuilt returns the error of a value that this version does not support.
func notBuilt(name, value, built string) error {
	return out.Usagef("--%s %q is not supported; choose %s", name, value, built)
}

// refuseUnconstrained reports --contiguous=false if it has no effect. check evaluates the given
// map, and estimate's other rows have no device map.
func (request *Request) refuseUnconstrained() error {
	if command := commands[request.cmd.Name()]; command&searching == 0 || request.Contiguous {
		return nil
	}
	strategy := request.work.Strategy
	if request.work.Runtime == costmodel.Devmap {
		return out.Usagef("--contiguous=false --runtime devmap: its maps are in the order of the model (left out, it works; any assignment is for --runtime %s)", costmodel.DeviceMap.Traits().Runtimes[0])
	}
	if !strategy.Traits().Sequential && (request.cmd.Name() == "plan" || !strategy.Traits().Open) {
		return out.Usagef("--contiguous=false --strategy %s: any assignment is for --strategy device-map; other strategies fix the order of the stages or place nothing", strategy)
	}
	if request.IsFront() {
		return out.Usagef("--contiguous=false --objective %s: a front is searched among contiguous maps; any assignment is for --objective memory or time", request.objective)
	}
	return nil
}

// refuseOffload reports --offload if it has no effect.
func (request *Request) refuseOffload() error {
	switch {
	case commands[request.cmd.Name()]&searching == 0, request.offload == noOffload, slices.Contains(offloadModes, request.offload):
		return nil
	case offloadsStates(request):
		return refuseStates(request)
	case request.cmd.Name() != "plan":
		return out.Usagef("--offload %s: it is for devmap plan", request.offload)
	case request.objective != string(planner.Memory):
		return out.Usagef("--offload %s --objective %s: what is minimised is the bytes that travel, so that offload goes with --objective memory", request.offload, request.objective)
	case request.work.Runtime == costmodel.Devmap:
		return out.Usagef("--offload %s --runtime devmap: its programs run every layer on a GPU (--runtime %s works)", request.offload, costmodel.DeviceMap.Traits().Runtimes[0])
	case request.work.Mode == costmodel.Train:
		return out.Usagef("--offload %s --mode train: Accelerate drops offloaded weights after forward, and backward needs them; in training use --offload cpu --strategy zero3", request.offload)
	case !request.work.Strategy.Traits().Sequential:
		return out.Usagef("--offload %s --strategy %s: units leave a device map (--strategy device-map works in inference; in training, --offload cpu does under fsdp and zero3)", request.offload, request.work.Strategy)
	case !request.Contiguous:
		return out.Usagef("--offload %s --contiguous=false: units leave a contiguous map", request.offload)
	}
	return nil
}

// offloadsStates reports that --offload means DeepSpeed's or FSDP's: of optimizer states and
// parameters, not of a map's units.
func offloadsStates(request *Request) bool {
	traits := request.work.Strategy.Traits()
	return request.offload == string(planner.CPU) && (traits.ZeroStage > 0 || request.dsConfig != "")
}

// refuseStates reports --offload if DeepSpeed's own file sets it, or if nothing is trained.
func refuseStates(request *Request) error {
	switch {
	case request.dsConfig != "":
		return out.Usagef("--offload %s --ds-config %s: the file says what DeepSpeed offloads; set offload_optimizer and offload_param there", request.offload, request.dsConfig)
	case request.Given("mode") && request.work.Mode != costmodel.Train:
		who := "DeepSpeed"
		if request.work.Strategy.Traits().ByBlock {
			who = "FSDP"
		}
		return out.Usagef("--offload %s --strategy %s --mode %s: %s offloads what training adds; use --mode train", request.offload, request.work.Strategy, request.work.Mode, who)
	}
	return nil
}

// refuseSearch reports objectives that plan and estimate cannot use.
func (request *Request) refuseSearch() error {
	switch strategy := request.work.Strategy; {
	case request.cmd.Name() == "estimate" && request.IsFront():
		return out.Usagef("--objective front is a table of its own: devmap plan prints it")
	case request.IsLatency() && request.work.Mode != "" && request.work.Mode != costmodel.Infer:
		return out.Usagef("--objective latency --mode %s: a request is of inference, and has a latency in --mode %s alone", request.work.Mode, costmodel.Infer)
	case request.IsLatency() && strategy.Traits().Open:
		return out.Usagef("--objective latency --strategy %s: strategies are compared by their steps; name one, as --strategy %s", strategy, costmodel.DeviceMap)
	case request.cmd.Name() == "estimate" && request.IsLatency():
		return out.Usagef("--objective latency: it is for devmap plan; devmap estimate compares steps")
	case commands[request.cmd.Name()]&searching != 0 && request.TimeLimit <= 0:
		return out.Usagef("--time-limit %v: it must be more than 0", request.TimeLimit)
	case request.cmd.Name() != "plan":
		return nil
	}
	return refuseMap(request)
}

// searched leaves a choice to the planner.
const searched = "auto"

// refuseMap reports an objective or constraints that the maps of plan cannot have.
func refuseMap(request *Request) error {
	strategy, work := request.work.Strategy, &request.work
	least := request.Given("objective") && request.objective == string(planner.Memory)
	switch {
	case least && work.OffloadActivations == searched:
		return out.Usagef("--objective memory --offload-activations auto: auto finds the shortest step; the least memory is that of --offload-activations full --recompute full")
	case least && work.Recompute == searched && work.Runtime == costmodel.Devmap && strategy.Traits().Staged:
		return out.Usagef("--objective memory --recompute auto --runtime %s: auto finds the shortest step; the least memory is that of --recompute full", costmodel.Devmap)
	case least && work.Schedule == costmodel.AutoSchedule:
		return out.Usagef("--objective memory --schedule auto: auto finds the shortest step; take --objective front, or name a schedule, as --schedule %s", costmodel.OneFOneB)
	case strategy.Traits().Replicated && len(request.pins)+len(request.together) > 0:
		return out.Usagef("--pin and --together place layers, and under --strategy %s every GPU runs them all (device-map and pipeline work)", strategy)
	}
	return nil
}
