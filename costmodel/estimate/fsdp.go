package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/shard"
	"github.com/devmap-dev/devmap/modelgraph"
)

// fsdp is PyTorch's FSDP2, on one group of GPUs or, as HSDP, on several that
// all-reduce: fully_shard on every block and on the model. Examples keep the
// loss alone.
func fsdp() engine {
	return engine{compute: gathered, cut: true, finish: func(e *estimator, t *costmodel.Table) {
		t.OutputsDropped = true
		t.Groups = e.groups()
		if t.Workload.Mode == costmodel.Train && t.Workload.MicroBatches > 1 {
			e.warnings = append(e.warnings, "FSDP2's defaults: gradients are reduced in every micro-batch, and their sharded sum is held")
		}
	}}
}

// checkFSDP refuses what fully_shard does not take or what is not modelled.
func checkFSDP(w *costmodel.Workload) error {
	switch {
	case !w.Strategy.Traits().ByBlock:
		return nil
	case w.ShardDegree < 1:
		return &costmodel.FieldError{Field: "shard_degree", Msg: costmodel.Messagef("%d is no number of GPUs; the divisors of %d work", w.ShardDegree, w.World)}
	case w.Quantize != "":
		// bitsandbytes keeps the statistics of a weight beside it, in blocks
		// that cutting by rows does not respect.
		return &costmodel.FieldError{Field: "quantize", Msg: costmodel.Messagef("FSDP2 cuts parameters by rows, which %s weights do not survive: use %v or device-map", w.Quantize, costmodel.Set("strategy", "ddp"))}
	}
	return nil
}

// gathered is the precision of gathered weights and so of compute: 16 bits
// where shards are fp32 (MixedPrecisionPolicy's param_dtype).
func gathered(p costmodel.Precision) costmodel.Precision {
	if p == costmodel.BF16Mixed {
		return costmodel.BF16True
	}
	if p == costmodel.FP16Mixed {
		return costmodel.FP16True
	}
	return p
}

// held is the part of a layer's parameters that one GPU stores.
func (e *estimator) held(i int) *modelgraph.Layer {
	l := &e.g.Layers[i]
	if !e.engine.cut {
		return l
	}
	local, rule := *l, shard.RuleOf(e.w.Strategy)
	local.Params = make([]modelgraph.Tensor, len(l.Params))
	for j := range l.Params {
		local.Params[j] = rule.Tensor(&l.Params[j], e.w.ShardDegree)
	}
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		d := *l.Declared
		d.ParamsBytes = share(d.ParamsBytes, e.w.ShardDegree)
		local.Declared = &d
	}
	e.carry(l, &local)
	return &local
}

// groups are FSDP2's parameter groups of the layers that run.
func (e *estimator) groups() []costmodel.Group {
	var out []costmodel.Group
	for _, g := range shard.Groups(e.g) {
		group := costmodel.Group{Name: g.Name, Root: g.Root, Kept: g.Root}
		for _, u := range g.Units {
			runs := false
			for i := e.g.Units[u].First; i < e.g.Units[u].End; i++ {
				runs = runs || e.runs(i)
				e.gather(&group, i)
			}
			if runs {
				group.Units = append(group.Units, u)
			}
		}
		if len(group.Units) > 0 {
			out = append(out, e.exchange(group))
		}
	}
	return out
}

// gather adds a layer's parameters to a group: whole, in the type of compute,
// and the gradients that are reduced.
func (e *estimator) gather(g *costmodel.Group, i int) {
	l, degree := e.held(i), e.w.ShardDegree
	trained := e.w.Mode == costmodel.Train && e.runs(i)
	e.gatherAdapters(g, l, trained)
	trained = trained && !e.frozen()
	if l.Declared != nil && l.Declared.ParamsBytes >= 0 {
		g.Gathered += degree * l.Declared.ParamsBytes
		g.Buffer += degree * l.Declared.ParamsBytes
		if trained {
			g.Reduce += degree * l.Declared.ParamsBytes
			g.LastGrad = e.g.Layers[i].Declared.ParamsBytes
		}
		return
	}
	for j := range l.Params {
		t := &l.Params[j]
		if t.Tied() {
			continue
		}
		if !t.DType.Float() {
			size := degree * t.Bytes()
			g.Gathered += size + rounding(size)
			g.Buffer += size
			continue
		}
		each := e.compute.WeightBytes()
		if e.compute == e.w.Precision && e.w.StoredTypes {
			each = t.DType.Bits() / 8
		}
		size := degree * t.Numel() * each
		g.Gathered += size + rounding(size)
		g.Buffer += size
		if trained {
			g.Reduce += degree * t.Numel() * e.reduceBytes()
			g.LastGrad = e.g.Layers[i].Params[j].Numel() * e.compute.WeightBytes()
		}
	}
}

// reduceBytes is the size of an element in reduction: fp32 under mixed
// precision (reduce_dtype), else the gradients' type.
func (e *estimator) reduceBytes() int64 { return e.w.Precision.WeightBytes() }

// exchange sizes a group's buffers. Buffer and Reduced come from pools of
// their own streams, where nothing else is cached, so that they pay the
// allocator's rounding; the gathered parameters are the first to be allocated
// and find their own blocks again. A group of one GPU copies instead of
// gathering (_fsdp_param_group.py unshard, foreach_reduce: world_size 1).
func (e *estimator) exchange(g costmodel.Group) costmodel.Group {
	degree := e.w.ShardDegree
	g.Reduced = g.Reduce / degree
	g.Reduced += rounding(g.Reduced)
	if degree == 1 {
		g.Buffer, g.LastGrad = 0, 0
		return g
	}
	if e.compute != e.w.Precision { // _get_param_all_gather_inputs: one flat cast copy
		g.CopyIn = g.Buffer / degree
	}
	g.Buffer += rounding(g.Buffer)
	return g
}

// share is one of n equal parts, rounded up.
func share(size, n int64) int64 { return (size + n - 1) / n }
