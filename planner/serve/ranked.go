package serve

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/serve/internal/paged"
)

// Log is what the start-up log of vLLM or SGLang says.
type Log = paged.Log

// ReadLog reads a start-up log of vLLM or SGLang.
func ReadLog(from io.Reader) (*Log, error) { return paged.ReadLog(from) }

// RankCacheTypes lists the types of the cache of vLLM and SGLang.
func RankCacheTypes() []string { return append([]string{"auto"}, paged.CacheTypes()...) }

// vllmVersion is the release of vLLM whose rules count if the user names none.
const vllmVersion = "0.33"

// vllmShare is the default of --gpu-memory-utilization (config/cache.py).
const vllmShare = 0.92

// RankQuestionOf is the question of a workload. Sizes that it leaves out are the engine's defaults
// for the first GPU. The error is for a text without a release, and for a model or GPU that the engine
// does not take.
func RankQuestionOf(graph *modelgraph.Graph, workload *costmodel.Workload, topology *costmodel.Topology) (*RankQuestion, error) {
	const element = 2 // of activations: 16 bits
	model, err := paged.FromGraph(graph, element)
	if err != nil {
		return nil, err
	}
	question := &RankQuestion{Model: model}
	for i := range topology.Devices {
		device := &topology.Devices[i]
		question.GPUs = append(question.GPUs, paged.GPU{Total: device.CapacityBytes, Free: device.Budget(), BytesPerSecond: device.BytesPerSecond, Fabric: slices.Contains([]string{"9.0", "10.0", "10.3"}, device.ComputeCapability)})
	}
	set := &question.Set
	if asked := workload.Context; model.Rope > 0 && model.Trained > 0 && asked > model.Trained {
		return nil, fmt.Errorf("a context of %d tokens: the model's config has %d at most, and the engine refuses more", asked, model.Trained)
	}
	if err := question.admits(workload, &topology.Devices[0]); err != nil {
		return nil, err
	}
	question.common(workload)
	if workload.Runtime == costmodel.SGLang {
		err = question.sglang(workload)
		return question, err
	}
	set.Version, err = paged.ParseVersion(cmp.Or(workload.EngineVersion, vllmVersion))
	if err != nil {
		return nil, err
	}
	batched, sequences := paged.VLLMDefaults(question.GPUs[0], topology.Devices[0].Name, topology.Devices[0].ComputeCapability)
	set.Batched, set.Sequences = cmp.Or(workload.BatchedTokens, batched), cmp.Or(workload.Sequences, sequences)
	if workload.BatchedTokens == 0 {
		set.Batched = min(set.Batched, set.Sequences*cmp.Or(set.Context, model.Trained))
	}
	if workload.Sequences == 0 {
		set.Sequences = min(set.Sequences, set.Batched)
	}
	set.Share, set.Block = cmp.Or(workload.MemFraction, question.share()), 16
	set.Machete = topology.Devices[0].ComputeCapability == "9.0"
	for i, gpu := range question.GPUs {
		if needs := int64(float64(gpu.Total) * set.Share); gpu.Total > 0 && gpu.Free < needs {
			return nil, fmt.Errorf("GPU %d has %v free, and the engine does not start with less than %v: --gpu-memory-utilization %.2f", i, costmodel.Bytes(gpu.Free), costmodel.Bytes(needs), question.share())
		}
	}
	return question, nil
}

// share is the part of a GPU that vLLM may use if the user says nothing: its default, or less if other
// programs have memory.
func (question *RankQuestion) share() float64 {
	share := vllmShare
	for _, gpu := range question.GPUs {
		if gpu.Total > 0 {
			const percent = 100
			share = min(share, math.Floor(float64(gpu.Free)/float64(gpu.Total)*percent)/percent)
		}
	}
	return share
}

// admits reports what the GPU does not compute for the engine.
func (question *RankQuestion) admits(workload *costmodel.Workload, device *costmodel.Device) error {
	const ampere = 8
	var major int
	if known, _ := fmt.Sscanf(device.ComputeCapability, "%d.", &major); known == 0 || major >= ampere {
		return nil
	}
	switch model := question.Model; {
	case strings.HasPrefix(model.Family, "gemma"):
		return fmt.Errorf("%s has no bf16, and %s computes in fp32 then: that is not planned", device.Name, model.Family)
	case model.Quantized == "mxfp4":
		return fmt.Errorf("%s does not compute with MXFP4: the engine wants compute capability 8.0", device.Name)
	case workload.KVType != "auto" && workload.KVType != "":
		return fmt.Errorf("%s has no cache in %s: the engine wants compute capability 8.0", device.Name, workload.KVType)
	}
	return nil
}

// common are the settings that both engines have.
func (question *RankQuestion) common(workload *costmodel.Workload) {
	set := &question.Set
	set.Context, set.Eager = workload.Context, workload.Eager
	if strings.HasPrefix(workload.KVType, "fp8") {
		set.CacheElement = 1
	}
	set.More = workload.CalibratedBytes
	degree := func(asked costmodel.Degree) int64 { return max(0, int64(asked)) }
	set.Degrees = paged.Degrees{Tensor: degree(workload.TP), Pipeline: degree(workload.PP), Data: degree(workload.DP)}
	switch {
	case workload.EP == costmodel.AutoDegree:
		set.Experts = -1
	case workload.EP.Count() > 1:
		set.Experts = workload.EP.Count()
	}
}

// sglangVersion is the release of SGLang whose rules count.
const sglangVersion = "0.5"

// sglang are SGLang's settings.
func (question *RankQuestion) sglang(workload *costmodel.Workload) (err error) {
	set := &question.Set
	set.Engine, set.Share, set.Block = paged.SGLang, workload.MemFraction, 1
	set.Batched, set.Sequences = cmp.Or(workload.BatchedTokens, paged.SGLangTokens(question.GPUs[0])), workload.Sequences
	set.Version, err = paged.ParseVersion(cmp.Or(workload.EngineVersion, sglangVersion))
	return err
}

// Workload is the workload with the sizes and degrees of the answer.
func (answer *RankAnswer) Workload(workload costmodel.Workload) costmodel.Workload {
	set := &answer.Set
	workload.Context, workload.Sequences, workload.BatchedTokens = set.Context, set.Sequences, set.Batched
	if set.Sequences == 0 { // SGLang's own (mem_cache/kv_cache_configurator.py, max_num_reqs)
		const least, most, each = 2048, 4096, 512
		workload.Sequences = min(max(int64(float64(answer.Tokens/set.Data)/float64(set.Context)*each), least), most)
	}
	workload.MemFraction, workload.EngineVersion = set.Share, set.Version.String()
	workload.TP, workload.PP, workload.DP = costmodel.Degree(set.Tensor), costmodel.Degree(set.Pipeline), costmodel.Degree(set.Data)
	workload.EP = costmodel.Degree(set.Experts)
	return workload
}

// Placed is the map of the graph's units: each is on the first GPU of its stage.
func (answer *RankAnswer) Placed(graph *modelgraph.Graph) devicemap.Map {
	placed := make(devicemap.Map, len(graph.Units))
	stage, layer := 0, 0
	for i := range graph.Units {
		if graph.Units[i].Kind == "decoder-layer" {
			for layer == answer.Counts[stage] && stage+1 < len(answer.Counts) {
				stage, layer = stage+1, 0
			}
			layer++
		}
		placed[i] = devicemap.Device(int64(stage) * answer.Set.Tensor)
	}
	return placed
}

// FirstOf is the first GPU of the stage of a GPU, in the first replica.
func (answer *RankAnswer) FirstOf(gpu int) int {
	set := &answer.Set
	if int64(gpu) >= set.Ranks() {
		return gpu
	}
	return int(set.StageOf(gpu) * set.Tensor)
}

// Stages are the stages of the plan, with all their GPUs.
func (answer *RankAnswer) Stages(graph *modelgraph.Graph) []devicemap.Stage {
	stages := answer.Placed(graph).Stages(graph, "")
	set := &answer.Set
	for i := range stages {
		stage := &stages[i]
		stage.DP, stage.TP = set.Data, set.Tensor
		for replica := range set.Data {
			for rank := range set.Tensor {
				stage.Devices = append(stage.Devices, int((replica*set.Pipeline+int64(i))*set.Tensor+rank))
			}
		}
	}
	return stages
}

// Predictions are what each GPU holds. GPUs that the engine does not use are empty.
func (answer *RankAnswer) Predictions(topology *costmodel.Topology) []devicemap.Prediction {
	predictions := make([]devicemap.Prediction, len(topology.Devices))
	for i := range topology.Devices {
		var rank paged.Rank
		units := 0
		if i < len(answer.Ranks) {
			rank, units = answer.Ranks[i], answer.Counts[answer.Set.StageOf(i)]
		}
		predictions[i] = devicemap.Serving(i, &topology.Devices[i], rank.Weights, rank.Cache, rank.Activation+rank.Graphs, rank.Other, 0)
		predictions[i].Units = units
	}
	return predictions
}

// Notes are what a user must know of the answer.
func (answer *RankAnswer) Notes(question *RankQuestion, topology *costmodel.Topology) (notes []string) {
	if first := topology.Devices[0].Host; slices.ContainsFunc(topology.Devices, func(device costmodel.Device) bool { return device.Host != first }) {
		notes = append(notes, "the GPUs are in several machines: start the engine on each, as its guide of several nodes says. The script is for one")
	}
	if used := int(answer.Set.Ranks()); used < len(question.GPUs) {
		notes = append(notes, fmt.Sprintf("%d of %d GPUs are used: no degrees of all of them suit the model", used, len(question.GPUs)))
	}
	if question.Set.Missing(question.Model) {
		notes = append(notes, fmt.Sprintf("the engine has no %s of its own: it may refuse the model, or run it by Transformers", question.Model.Class))
	}
	if measured := []string{"0.19", "0.26"}; question.Set.Engine == paged.VLLM && question.Set.More == 0 && !slices.Contains(measured, question.Set.Version.String()) {
		notes = append(notes, fmt.Sprintf("buffers of vLLM %v were not measured, as those of %s were: the cache may differ by %v (devmap watch PLAN --log FILE)", question.Set.Version, strings.Join(measured, " and "), costmodel.Bytes(uncertain)))
	}
	if question.Model.Tower {
		notes = append(notes, "the memory of a pass over images or sound is not counted")
	}
	return notes
}

// StagesOf returns the layers of each stage in a map of the graph's units, and a fault of one that no
// engine with ranks makes: layers are in order, and each stage has some.
func StagesOf(graph *modelgraph.Graph, placed devicemap.Map, degrees paged.Degrees) ([]int, *devicemap.Fault) {
	counts, last := make([]int, max(1, degrees.Pipeline)), 0
	for i := range graph.Units {
		unit := &graph.Units[i]
		stage := int(int64(placed[i]) / max(1, degrees.Tensor))
		if placed[i] < 0 || stage >= len(counts) || stage < last {
			return nil, &devicemap.Fault{Module: unit.Name, Message: costmodel.Messagef("it is on device %v: stages have their units in order, on %d GPUs each", placed[i], degrees.Tensor)}
		}
		last = stage
		if unit.Kind == "decoder-layer" {
			counts[stage]++
		}
	}
	if empty := slices.Index(counts, 0); empty >= 0 {
		return nil, &devicemap.Fault{Message: costmodel.Messagef("stage %d has no layer", empty)}
	}
	return counts, nil
}

// Changes are changes with which a question has an answer. [SolveRanks] found each.
func (question *RankQuestion) Changes() (changes []Change) {
	try := func(change Change, apply func(*RankQuestion)) {
		other := *question
		apply(&other)
		if answer, err := SolveRanks(&other); err == nil {
			if question.Set.Context > 0 && other.Set.Context == 0 {
				change.Set = append(change.Set, costmodel.Set("context", answer.Set.Context))
			}
			change.Text = fmt.Sprintf("%d tokens of context, %d in the cache (%v)", answer.Set.Context, answer.Tokens, answer.Set.Degrees)
			changes = append(changes, change)
		}
	}
	const few, short, fuller = 32, 2048, 0.95
	set := func(field string, value any) []costmodel.Setting {
		return []costmodel.Setting{costmodel.Set(field, value)}
	}
	if question.Set.Context > 0 {
		try(Change{}, func(other *RankQuestion) { other.Set.Context = 0 })
	}
	if question.Set.CacheElement == 0 {
		try(Change{Set: set("kv_type", "fp8")}, func(other *RankQuestion) { other.Set.CacheElement = 1 })
	}
	if question.Set.Sequences > few {
		try(Change{Set: set("sequences", few)}, func(other *RankQuestion) { other.Set.Sequences = few })
	}
	if question.Set.Batched > short {
		try(Change{Set: set("max_num_batched_tokens", short)}, func(other *RankQuestion) {
			other.Set.Batched, other.Set.Sequences = short, min(short, other.Set.Sequences)
		})
	}
	roomy := !slices.ContainsFunc(question.GPUs, func(gpu paged.GPU) bool { return float64(gpu.Free) < fuller*float64(gpu.Total) })
	if share := question.Set.Share; share > 0 && share < fuller && roomy {
		try(Change{Set: set("mem_fraction", fuller)}, func(other *RankQuestion) { other.Set.Share = fuller })
	}
	most := len(changes) + 1
	for count := len(question.GPUs) + 1; count <= 8*len(question.GPUs) && len(changes) < most; count++ {
		try(Change{GPUs: count}, func(other *RankQuestion) {
			for len(other.GPUs) < count {
				other.GPUs = append(other.GPUs[:len(other.GPUs):len(other.GPUs)], slices.MaxFunc(question.GPUs, func(one, two paged.GPU) int { return cmp.Compare(one.Total, two.Total) }))
			}
		})
	}
	return changes
}

// PerToken are the bytes of a token in the cache of each layer, on one GPU.
func (question *RankQuestion) PerToken() []int64 {
	set := question.Set
	set.Degrees = paged.Degrees{Tensor: 1, Pipeline: 1, Data: 1}
	return set.PerToken(question.Model)
}
