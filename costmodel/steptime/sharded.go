package steptime

import (
	"cmp"

	"github.com/devmap-dev/devmap/costmodel"
)

// sharded is one step of FSDP2, HSDP or ZeRO-3 on device d. A unit is gathered
// while the one before it runs; gradients are scattered while the next
// unit's backward runs. All collectives of a group go through one stream
// (ProcessGroupNCCL), HSDP's all-reduce through another group's. From
// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: unshard,
// wait_for_unshard, _prefetch_unshard, post_backward.
func (s *timing) sharded(d int) float64 {
	g := s.gather(d)
	w := &s.t.Workload
	var update float64
	for u := range s.t.Units {
		update += s.updates(d, s.work(u).Update)
	}
	total := s.microBatches() * g.pass(func(w *costmodel.Work) costmodel.Pass { return w.Forward }, w.Mode == costmodel.Train)
	if w.NewTokens > 0 {
		total += s.tokens() * g.pass(func(w *costmodel.Work) costmodel.Pass { return w.Token }, false)
	}
	if w.Mode == costmodel.Train {
		total += update / float64(g.degree)
	}
	return total
}

// gatherer runs a sharded pass over the units.
type gatherer struct {
	s              *timing
	d              int
	degree         int64 // GPUs that a parameter is cut over
	replicas       int64 // HSDP: groups of them
	compute, grads int64 // bytes an element, gathered and reduced
	root           int64 // elements of the units that are in no block
	now            float64
	host           float64 // when the host has issued what was run so far
	stream, reduce float64 // when the groups' streams are free
}

func (s *timing) gather(d int) *gatherer {
	w := &s.t.Workload
	n := int64(len(s.topo.Devices))
	g := &gatherer{s: s, d: d, degree: min(n, max(1, w.ShardDegree)), compute: wire(w), grads: reduced(w)}
	g.replicas = n / g.degree
	for u := range s.t.Units {
		if !s.work(u).Block {
			g.root += s.work(u).Weights
		}
	}
	return g
}

// pass is one micro-batch: forward, and backward where it trains. The root's
// parameters are gathered first and stay to the end.
func (g *gatherer) pass(forward func(*costmodel.Work) costmodel.Pass, train bool) float64 {
	g.now, g.host, g.stream, g.reduce = 0, 0, 0, 0
	g.unshard(g.root)
	g.opened(g.stream, g.root)
	units := g.s.t.Units
	ready := g.prefetched(0, 1)
	for u := range units {
		w := &units[u].Work
		if w.Block {
			g.opened(ready, w.Weights)
			ready = g.prefetched(u+1, 1)
		}
		g.ran(g.s.issue(g.d, forward(w)), forward(w), w)
	}
	if !train {
		return g.now
	}
	ready = g.prefetched(len(units)-1, -1)
	for u := len(units) - 1; u >= 0; u-- {
		w := &units[u].Work
		if w.Block {
			g.opened(ready, w.Weights)
			ready = g.prefetched(u-1, -1)
		}
		g.ran(g.s.issueBack(g.d, w.Backward), w.Backward, w)
		if w.Block {
			g.scatter(w.Trained)
		}
	}
	var rest int64
	for u := range units {
		if w := &units[u].Work; !w.Block {
			rest += w.Trained
		}
	}
	g.scatter(rest)
	return max(g.now, g.stream, g.reduce)
}

// ran is a unit's pass, whose kernels and hooks the host issues.
func (g *gatherer) ran(issue float64, p costmodel.Pass, w *costmodel.Work) {
	g.host += issue
	if w.Block {
		g.host += float64(w.Tensors) * g.s.topo.Devices[g.d].ShardedIssueSeconds
	}
	g.now = max(g.now+g.s.seconds(g.d, p), g.host)
}

// prefetched issues the all-gather of the next block from u on, and is when
// it ends.
func (g *gatherer) prefetched(u, step int) float64 {
	for ; u >= 0 && u < len(g.s.t.Units); u += step {
		if w := g.s.work(u); w.Block {
			g.unshard(w.Weights)
			break
		}
	}
	return g.stream
}

// unshard copies a unit's shards to the gather's input, in the compute
// precision (_fsdp_collectives.py all_gather_copy_in), and gathers them.
func (g *gatherer) unshard(weights int64) {
	copied := float64(weights*(g.compute+g.s.t.Workload.Precision.WeightBytes())) / float64(g.degree)
	g.stream = max(g.stream, g.now) + over(copied, g.strided())
	g.stream = g.run(g.stream, ringShare(g.degree)*float64(weights*g.compute), g.degree)
}

// run is when a collective ends that starts when its stream is free; the
// processors that it occupies are lost to kernels.
func (g *gatherer) run(free, bytes float64, n int64) float64 {
	seconds := g.s.beside(bytes, n)
	end := max(free, g.now) + seconds
	g.now += seconds * g.s.topo.Devices[g.d].CollectiveShare
	return end
}

func (g *gatherer) strided() float64 {
	d := &g.s.topo.Devices[g.d]
	return cmp.Or(d.StridedBytesPerSecond, d.BytesPerSecond)
}

// opened waits for a gathered unit and copies it out to its parameters
// (_fsdp_collectives.py foreach_all_gather_copy_out).
func (g *gatherer) opened(ready float64, weights int64) {
	g.now = max(g.now, ready)
	if g.degree > 1 {
		g.now += over(2*float64(weights*g.compute), g.s.topo.Devices[g.d].BytesPerSecond)
	}
}

// scatter copies gradients to the reduction's input (_fsdp_collectives.py
// foreach_reduce_scatter_copy_in), reduces them and, under HSDP, sums the
// parts over the replicas.
func (g *gatherer) scatter(trained int64) {
	rate := g.s.topo.Devices[g.d].BytesPerSecond
	if g.compute != g.grads {
		rate = g.strided() // a cast up
	}
	g.now += over(float64(trained*(g.compute+g.grads)), rate)
	bytes := float64(trained * g.grads)
	g.stream = g.run(g.stream, ringShare(g.degree)*bytes, g.degree)
	if g.replicas > 1 {
		part := bytes / float64(g.degree)
		g.reduce = g.run(max(g.reduce, g.stream), 2*ringShare(g.replicas)*part, g.replicas)
	}
}
