package emit

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// cut is a pipeline as programs take it that have the same degrees on all stages and
// cut a decoder between its blocks.
type cut struct {
	parts          []part // by stage, in order of execution
	ranks          int64
	dp, tp, shard  int64
	cp, ep         int64
	layers         int
	engine         string
	plan           *devicemap.Plan
	recompute      string
	perMicro, step int64 // sequences
}

// part is what a stage has: the first stage the embedding, the last one the head.
type part struct{ first, layers int }

// blockUnit is a decoder's block; ends are its other units: E for the embedding, L for
// the norm and the head behind the blocks, - for what each stage makes.
var (
	blockUnit = regexp.MustCompile(`^(?:[a-z_]+\.)*(?:layers|h|blocks|block)\.(\d+)$`)
	ends      = map[string]byte{
		"embed_tokens": 'E', "wte": 'E', "wpe": 'E', "embed_in": 'E', "tok_embeddings": 'E',
		"norm": 'L', "ln_f": 'L', "final_layernorm": 'L', "final_layer_norm": 'L', "lm_head": 'L', "embed_out": 'L', "output": 'L', "rotary_emb": '-',
	}
)

// cutOf is the cut of a plan for an engine, or why the engine has no form for it. A
// plan without stages is one part.
func cutOf(plan *devicemap.Plan, engine string) (*cut, error) {
	workload := &plan.Workload
	made := &cut{
		engine: engine, plan: plan, cp: workload.CP.Count(), ep: workload.EP.Count(), dp: workload.DP.Count(), tp: workload.TP.Count(), shard: workload.ShardDegree, ranks: 1,
		recompute: cmp.Or(workload.Recompute, costmodel.RecomputeNone), perMicro: perDevice(workload), step: workload.Batch,
	}
	if !workload.Strategy.Traits().Staged {
		made.dp = max(1, workload.World)
		return made, nil
	}
	ranks, schedule, err := staged(plan)
	if err != nil {
		return nil, err
	}
	made.ranks = schedule.Stages
	if len(ranks)%int(made.ranks) != 0 {
		return nil, made.refuse("%d stages on %d ranks, and each rank has as many", len(ranks), made.ranks)
	}
	for i := range plan.Stages {
		if err := made.add(&plan.Stages[i], i == 0, i == len(plan.Stages)-1); err != nil {
			return nil, err
		}
	}
	if made.ranks*made.dp*made.tp*made.cp != workload.World {
		return nil, made.refuse("%d stages × dp %d × tp %d × cp %d, which is not its %d GPUs", made.ranks, made.dp, made.tp, made.cp, workload.World)
	}
	return made, nil
}

// refuse says what of the plan the engine cannot express.
func (made *cut) refuse(format string, args ...any) error {
	return refused("the plan for %q has %s: the form of %s cannot say that", made.plan.Model.Name, fmt.Sprintf(format, args...), made.engine)
}

// add appends a stage.
func (made *cut) add(stage *devicemap.Stage, first, last bool) error {
	dp, tp := cmp.Or(stage.DP, made.plan.Workload.DP.Count()), cmp.Or(stage.TP, made.plan.Workload.TP.Count())
	recompute := cmp.Or(stage.Recompute, made.plan.Workload.Recompute, costmodel.RecomputeNone)
	if first {
		made.dp, made.tp, made.recompute = dp, tp, recompute
	}
	if dp != made.dp || tp != made.tp {
		return made.refuse("dp %d and tp %d on stage 0, dp %d and tp %d on stage %d (give --dp and --tp numbers)", made.dp, made.tp, dp, tp, stage.Stage)
	}
	if recompute != made.recompute {
		return made.refuse("recompute %s on stage 0 and %s on stage %d (give --recompute none or full)", made.recompute, recompute, stage.Stage)
	}
	at := part{first: made.layers}
	for _, unit := range stage.Units {
		if err := made.unit(&at, unit, stage.Stage, first, last); err != nil {
			return err
		}
	}
	made.parts = append(made.parts, at)
	return nil
}

// unit adds a unit of a stage to its part.
func (made *cut) unit(at *part, unit string, stage int, first, last bool) error {
	block := ""
	if found := blockUnit.FindStringSubmatch(unit); len(found) == 2 {
		block = found[1]
	}
	place := ends[unit[strings.LastIndexByte(unit, '.')+1:]]
	switch {
	case block != "" && block != strconv.Itoa(made.layers):
		return made.refuse("block %s where block %d is next", block, made.layers)
	case block != "":
		made.layers++
		at.layers++
	case place == 0:
		return made.refuse("the unit %s, which is no block, embedding, norm or head of a decoder", quote.Comment(unit))
	case place == 'E' && (!first || at.layers > 0):
		return made.refuse("the embedding %s on stage %d", quote.Comment(unit), stage)
	case place == 'L' && !last:
		return made.refuse("%s on stage %d, and norm and head on the last (keep them in one: plan with --together %s)", quote.Comment(unit), stage, quote.Comment(made.behind()))
	}
	return nil
}

// behind are the units behind the blocks, as --together takes them.
func (made *cut) behind() string {
	var units []string
	for i := range made.plan.Stages {
		for _, unit := range made.plan.Stages[i].Units {
			if ends[unit[strings.LastIndexByte(unit, '.')+1:]] == 'L' {
				units = append(units, unit)
			}
		}
	}
	return strings.Join(units, ",")
}

// ofLayers refuses a cut of another number of blocks than the model's.
func (made *cut) ofLayers(count int64) error {
	if len(made.parts) > 0 && int64(made.layers) != count {
		return made.refuse("%d blocks in its stages, and the model has %d", made.layers, count)
	}
	return nil
}
