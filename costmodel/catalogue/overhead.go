package catalogue

import (
	_ "embed"
	"sync"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

type overhead struct {
	NCCL struct {
		World figure `json:"world"`
		Mesh  figure `json:"mesh"`
		P2P   figure `json:"p2p"`
		Peer  figure `json:"peer"`
	} `json:"nccl"`
	Slack struct {
		Source string           `json:"source"`
		Kinds  map[string]slack `json:"kinds"`
		// Followed is the slack, as parts of the peak, if the pool's requests are followed one by
		// one. The ranges are for blocks that return when dropped, for pools of several streams,
		// and for blocks that wait for a second stream (recorded).
		Followed struct {
			Source   string     `json:"source"`
			Dropped  [2]float64 `json:"dropped"`
			Streams  [2]float64 `json:"streams"`
			Recorded [2]float64 `json:"recorded"`
		} `json:"followed"`
	} `json:"slack"`
}

// slack is the least and most that the allocator's pool reserves above a peak, as fractions of the
// peak: on GPUs with the loss or the model's outputs (Head), and on others.
type slack struct {
	Body [2]float64 `json:"body"`
	Head [2]float64 `json:"head"`
}

//go:embed overhead.json
var rawOverhead []byte

var loadOverhead = sync.OnceValue(func() overhead { return read[overhead](rawOverhead) })

// Overhead is the memory of a GPU in addition to the allocator's requests at the peak.
//   - used: bytes of contexts and of NCCL. An arena ([costmodel.StageRules]) has no NCCL,
//     and a smaller context than PyTorch.
//   - body, head: slack of the pool, on GPUs without and with the model's head.
//   - followed: that slack if the cost model follows the pool's requests one by one.
func Overhead(workload *costmodel.Workload) (used costmodel.Comm, body, head, followed [2]float64) {
	if costmodel.StageRulesOf(workload.Runtime).Arena {
		used.Contexts = contexts(load().OwnContext, workload.Mode)
		return used, body, head, followed
	}
	if workload.Runtime == value.JAX { // whose pool is one block from the start
		used = comm(workload)
		used.Contexts = contexts(load().JAXContext, workload.Mode)
		return used, body, head, followed
	}
	pool := slackOf(workload)
	if torchao := workload.Optimizer == value.AdamWTorch8bit || workload.Optimizer == value.AdamWTorch4bit; workload.Float8 != "" || torchao {
		pool.Body[1], pool.Head[1] = max(pool.Body[1], wideRange), max(pool.Head[1], wideRange)
	}
	return comm(workload), pool.Body, pool.Head, followedOf(workload)
}

// wideRange is the largest excess of the pool with torchao, as a part of the peak: its temporaries
// have four sizes for each operand (measured/float8_h200.jsonl).
const wideRange = 0.54

// contexts are an engine's and PyTorch's measured contexts, by compute capability.
func contexts(engine map[string]figure, mode costmodel.Mode) map[string][2]int64 {
	found := make(map[string][2]int64)
	for capability, own := range engine {
		found[capability] = [2]int64{forCapability(load().Context, capability).of(mode), own.Bytes}
	}
	return found
}

// comm is what NCCL holds on a GPU under a workload, outside the engine's
// allocator. One process that owns all GPUs (a device map) has no NCCL.
func comm(workload *costmodel.Workload) costmodel.Comm {
	traits := workload.Strategy.Traits()
	if traits.Sequential || workload.World < 2 || workload.Mode == costmodel.Load {
		return costmodel.Comm{}
	}
	nccl := loadOverhead().NCCL
	used := costmodel.Comm{World: nccl.World.Bytes}
	switch {
	case traits.Groups > 1:
		used.World += nccl.Mesh.Bytes
	case traits.Staged:
		used.World += nccl.P2P.Bytes
		used.Peer, used.Ring = nccl.Peer.Bytes, workload.Schedule.Loops()
		for _, degree := range []int64{workload.DP.Count(), workload.TP.Count(), workload.CP.Count(), workload.EP.Count()} {
			if degree > 1 { // a communicator of their own, as a mesh's second has
				used.World += nccl.Mesh.Bytes
			}
		}
	}
	return used
}

// followedOf is the range for a workload. DeepSpeed records gathered parameters and gradients on
// the streams of its overlap_comm (Tensor.record_stream), stage 3's default.
func followedOf(workload *costmodel.Workload) [2]float64 {
	ranges := loadOverhead().Slack.Followed
	traits := workload.Strategy.Traits()
	stage := traits.ZeroStage
	recorded := stage == 3 && !traits.ByBlock
	if workload.DeepSpeed != nil {
		recorded = workload.DeepSpeed.Overlap
	}
	switch {
	case stage > 0 && recorded:
		return ranges.Recorded
	case stage > 0:
		return ranges.Streams
	}
	return ranges.Dropped
}

// slackOf is the pool's measured excess over the peak for the workload's kind, or the nearest kind.
func slackOf(workload *costmodel.Workload) slack {
	kinds := loadOverhead().Slack.Kinds
	switch {
	case workload.Mode == costmodel.Load:
		return kinds["load"]
	case workload.Mode == costmodel.Infer && workload.NewTokens > 0:
		return kinds["generate"]
	case workload.Mode == costmodel.Infer:
		return kinds["infer"]
	}
	kind := trainingKind(workload, kinds)
	if recomputed, ok := kinds[kind+" recompute"]; ok && workload.Recompute == costmodel.RecomputeFull {
		return recomputed
	}
	return kinds[kind]
}

// trainingKind is the kind of a training: its program's if measured, else its strategy's, or one
// with the same range with and without recomputation.
func trainingKind(workload *costmodel.Workload, kinds map[string]slack) string {
	traits, path := workload.Strategy.Traits(), &trainer.Of(workload.Preset).Path
	switch {
	case path.Flat && traits.ByBlock: // fixtures/measured/trainer_fsdp_h200.jsonl
		return "fsdp1"
	case workload.HostShards: // the same rows
		return "fsdp offload"
	case path.Modules != "":
		return "fsdp " + path.Modules // fixtures/measured/native_h200.jsonl
	}
	kind := string(workload.Strategy)
	switch {
	case traits.Sharded && !traits.ByBlock:
		kind = string(costmodel.FSDP)
	case traits.ZeroStage > 0 && !traits.Sharded:
		kind = string(costmodel.DDP)
	case traits.Sequential && workload.LoRARank > 0:
		kind += " lora"
	}
	if _, measured := kinds[kind+" trainer"]; measured && path.StateDict {
		kind += " trainer" // fixtures/measured/trainer_h200.jsonl
	}
	return kind
}
