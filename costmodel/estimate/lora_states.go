package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// adapterBytes is the size of an element of an adapter's parameter, and of its
// gradient and states unless DeepSpeed keeps a master.
func (e *estimator) adapterBytes() int64 {
	if e.w.LoRAPrecision == costmodel.AdaptersBF16 {
		return 2
	}
	return 4
}

// matrices are the shapes of a layer's adapters, A [rank, in] and B
// [out, rank], or of one GPU's rows of them.
func (e *estimator) matrices(l *modelgraph.Layer) [][]int64 {
	degree := max(1, e.cutBy[l])
	var out [][]int64
	for _, a := range e.adapters[l] {
		out = append(out, []int64{share(a.Rank, degree), a.In}, []int64{share(a.Out, degree), a.Rank})
	}
	return out
}

// adapterParams is the size of a layer's adapters and what the allocator adds.
func (e *estimator) adapterParams(l *modelgraph.Layer) (size, padding int64) {
	for _, m := range e.matrices(l) {
		n := e.adapterBytes() * m[0] * m[1]
		size += n
		padding += rounding(n)
	}
	return size, padding
}

// adapterStates are the optimizer's.
func (e *estimator) adapterStates(l *modelgraph.Layer) (state, transient int64) {
	for _, m := range e.matrices(l) {
		s, t := e.stateOf(m, m[0]*m[1], e.adapterBytes())
		state, transient = state+s, transient+t
	}
	return state, transient
}

// adapterCompute is the size of an adapter's parameter as the ops read it, and
// of its gradient there: FSDP2's mixed precision gathers fp32 shards as 16 bits.
func (e *estimator) adapterCompute() int64 {
	if e.engine.cut && e.compute != e.w.Precision {
		return e.compute.WeightBytes()
	}
	return e.adapterBytes()
}

// carry gives a layer's cut copy what is known of its linear layers.
func (e *estimator) carry(from, to *modelgraph.Layer) {
	for j := range from.Params {
		if n, ok := e.linears[&from.Params[j]]; ok {
			e.linears[&to.Params[j]] = n
		}
	}
	if a := e.adapters[from]; a != nil {
		e.adapters[to], e.cutBy[to] = a, e.w.ShardDegree
	}
}

// gatherAdapters adds a cut layer's adapters to a group: FSDP2 gathers them
// with the base, in the type of compute, and reduces their gradients alone.
func (e *estimator) gatherAdapters(g *costmodel.Group, l *modelgraph.Layer, trained bool) {
	for _, m := range e.matrices(l) {
		n := e.w.ShardDegree * m[0] * m[1]
		size := n * e.adapterCompute()
		g.Gathered += size + rounding(size)
		g.Buffer += size
		if trained {
			g.Reduce += n * e.adapterBytes()
			g.LastGrad = size
		}
	}
}
