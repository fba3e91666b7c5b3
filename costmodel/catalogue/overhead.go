package catalogue

import (
	_ "embed"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/devmap-dev/devmap/costmodel"
)

type overhead struct {
	NCCL struct {
		World constant `json:"world"`
		Mesh  constant `json:"mesh"`
		P2P   constant `json:"p2p"`
		Peer  constant `json:"peer"`
	} `json:"nccl"`
	Slack struct {
		Source string                     `json:"source"`
		Kinds  map[string]costmodel.Slack `json:"kinds"`
	} `json:"slack"`
}

//go:embed overhead.json
var rawOverhead []byte

var loadOverhead = sync.OnceValue(func() overhead {
	var o overhead
	if err := json.Unmarshal(rawOverhead, &o, json.RejectUnknownMembers(true)); err != nil {
		panic("catalogue: overhead.json: " + err.Error()) // embedded: a build fault
	}
	return o
})

// Overhead is what a GPU holds under a workload beyond what the engine's
// allocator was asked for at the peak: NCCL's bytes, and the slack of the pool.
func Overhead(w *costmodel.Workload) (costmodel.Comm, costmodel.Slack) { return comm(w), slack(w) }

// comm is what NCCL holds on a GPU under a workload, outside the engine's
// allocator. One process that owns all GPUs (a device map) has no NCCL.
func comm(w *costmodel.Workload) costmodel.Comm {
	traits := w.Strategy.Traits()
	if traits.Sequential || w.World < 2 || w.Mode == costmodel.Load {
		return costmodel.Comm{}
	}
	n := loadOverhead().NCCL
	c := costmodel.Comm{World: n.World.Bytes}
	switch {
	case traits.Groups > 1:
		c.World += n.Mesh.Bytes
	case traits.Staged:
		c.World += n.P2P.Bytes
		c.Peer, c.Ring = n.Peer.Bytes, w.Schedule == costmodel.Interleaved
	}
	return c
}

// slack is how far the allocator's pool went beyond the peak in measured runs
// of the workload's kind; of the nearest kind where none was measured.
func slack(w *costmodel.Workload) costmodel.Slack {
	kinds := loadOverhead().Slack.Kinds
	switch {
	case w.Mode == costmodel.Load:
		return kinds["load"]
	case w.Mode == costmodel.Infer && w.NewTokens > 0:
		return kinds["generate"]
	case w.Mode == costmodel.Infer:
		return kinds["infer"]
	}
	kind := string(w.Strategy)
	switch traits := w.Strategy.Traits(); {
	case traits.Sharded && !traits.ByBlock:
		kind = string(costmodel.FSDP)
	case traits.ZeroStage > 0 && !traits.Sharded:
		kind = string(costmodel.DDP)
	case traits.Sequential && w.LoRARank > 0:
		kind += " lora"
	}
	if s, ok := kinds[kind+" recompute"]; ok && w.Recompute == costmodel.RecomputeFull {
		return s
	}
	return kinds[kind]
}
