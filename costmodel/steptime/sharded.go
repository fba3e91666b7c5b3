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
	var update float64
	for u := range g.seconds {
		t := Unit(s.table, s.topo, d, u)
		g.seconds[u], update = t, update+t.Update
	}
	total := s.microBatches() * g.pass(s.trains())
	if s.tokens() > 0 {
		for u := range g.seconds {
			g.seconds[u].Forward, g.seconds[u].Issue = g.seconds[u].Token, g.seconds[u].IssueToken
		}
		total += s.tokens() * g.pass(false)
	}
	if s.trains() {
		total += update / float64(g.degree)
	}
	return total
}

// gatherer runs a sharded pass over the units.
type gatherer struct {
	*timing
	device         *costmodel.Device
	seconds        []UnitSeconds // by unit
	degree         int64         // GPUs that a parameter is cut over
	replicas       int64         // HSDP: groups of them
	compute, grads int64         // bytes an element, gathered and reduced
	root           int64         // elements of the units that are in no block
	clock          Clock
	stream, reduce float64 // when the groups' streams are free
}

func (s *timing) gather(d int) *gatherer {
	w := &s.table.Workload
	n := int64(len(s.topo.Devices))
	g := &gatherer{
		timing: s, device: &s.topo.Devices[d], seconds: make([]UnitSeconds, len(s.table.Units)),
		degree: min(n, max(1, w.ShardDegree)), compute: wire(w), grads: reduced(w),
	}
	g.replicas = n / g.degree
	for u := range s.table.Units {
		if work := &s.table.Units[u].Work; !work.Block {
			g.root += work.Weights
		}
	}
	return g
}

// pass is one micro-batch: forward, and backward where it trains. The root's
// parameters are gathered first and stay to the end.
func (g *gatherer) pass(train bool) float64 {
	g.clock, g.stream, g.reduce = Clock{}, 0, 0
	g.unshard(g.root)
	g.opened(g.stream, g.root)
	units := g.table.Units
	ready := g.prefetched(0, 1)
	for u := range units {
		w := &units[u].Work
		if w.Block {
			g.opened(ready, w.Weights)
			ready = g.prefetched(u+1, 1)
		}
		g.ran(w, g.seconds[u].Issue, g.seconds[u].Forward)
	}
	if !train {
		return g.clock.Device
	}
	ready = g.prefetched(len(units)-1, -1)
	for u := len(units) - 1; u >= 0; u-- {
		w := &units[u].Work
		if w.Block {
			g.opened(ready, w.Weights)
			ready = g.prefetched(u-1, -1)
		}
		g.ran(w, g.seconds[u].IssueBack, g.seconds[u].Backward)
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
	return max(g.clock.Device, g.stream, g.reduce)
}

// ran is a unit's pass, whose kernels and hooks the host issues.
func (g *gatherer) ran(w *costmodel.Work, issue, length float64) {
	g.clock.Host += issue
	hooks := 0.
	if w.Block {
		hooks = float64(w.Tensors) * g.device.ShardedIssueSeconds
	}
	g.clock.Run(hooks, length)
}

// prefetched issues the all-gather of the next block from u on, and is when
// it ends.
func (g *gatherer) prefetched(u, step int) float64 {
	for ; u >= 0 && u < len(g.table.Units); u += step {
		if w := &g.table.Units[u].Work; w.Block {
			g.unshard(w.Weights)
			break
		}
	}
	return g.stream
}

// unshard copies a unit's shards to the gather's input, in the compute
// precision (_fsdp_collectives.py all_gather_copy_in), and gathers them.
func (g *gatherer) unshard(weights int64) {
	copied := float64(weights*(g.compute+g.table.Workload.Precision.WeightBytes())) / float64(g.degree)
	g.stream = max(g.stream, g.clock.Device) + over(copied, g.strided())
	g.stream = g.collect(g.stream, ringPart(g.degree)*float64(weights*g.compute), g.degree)
}

// collect is when a collective ends that starts when its stream is free; the
// processors that it occupies are lost to kernels.
func (g *gatherer) collect(free, bytes float64, n int64) float64 {
	seconds := g.beside(bytes, n)
	end := max(free, g.clock.Device) + seconds
	g.clock.Device += seconds * g.device.CollectiveShare
	return end
}

func (g *gatherer) strided() float64 {
	return cmp.Or(g.device.StridedBytesPerSecond, g.device.BytesPerSecond)
}

// opened waits for a gathered unit and copies it out to its parameters
// (_fsdp_collectives.py foreach_all_gather_copy_out).
func (g *gatherer) opened(ready float64, weights int64) {
	g.clock.Await(ready)
	if g.degree > 1 {
		g.clock.Device += over(2*float64(weights*g.compute), g.device.BytesPerSecond)
	}
}

// scatter copies gradients to the reduction's input (_fsdp_collectives.py
// foreach_reduce_scatter_copy_in), reduces them and, under HSDP, sums the
// parts over the replicas.
func (g *gatherer) scatter(trained int64) {
	rate := g.device.BytesPerSecond
	if g.compute != g.grads {
		rate = g.strided() // a cast up
	}
	g.clock.Device += over(float64(trained*(g.compute+g.grads)), rate)
	bytes := float64(trained * g.grads)
	g.stream = g.collect(g.stream, ringPart(g.degree)*bytes, g.degree)
	if g.replicas > 1 {
		part := bytes / float64(g.degree)
		g.reduce = g.collect(max(g.reduce, g.stream), 2*ringPart(g.replicas)*part, g.replicas)
	}
}
