package steptime

import (
	"cmp"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
)

// passSeconds is the time of a pass on a device: its kernels run one after the
// other, products at the rate of their type, all else as fast as memory is
// read and written. Rates that are not known take no time.
func passSeconds(d *costmodel.Device, p costmodel.Pass, precision costmodel.Precision) float64 {
	products, attention := d.FLOPS, d.AttentionFLOPS
	if precision.ComputeBytes() == 4 && d.FP32FLOPS > 0 {
		products = d.FP32FLOPS // PyTorch uses TF32 only where it is told to
	}
	if attention <= 0 {
		attention = products
	}
	unaligned := products
	if precision.ComputeBytes() == 2 && d.UnalignedFLOPS > 0 {
		unaligned = d.UnalignedFLOPS
	}
	return over(p.Products, products) + over(p.Unaligned, unaligned) + over(p.Attention, attention) +
		over(p.Traffic, d.BytesPerSecond) + over(p.Strided, cmp.Or(d.StridedBytesPerSecond, d.BytesPerSecond)) + p.Kernels*d.KernelSeconds + p.Profiled
}

// updateSeconds is the time of the optimizer's kernels that read and write so many
// bytes.
func updateSeconds(d *costmodel.Device, bytes float64, precision costmodel.Precision) float64 {
	rate := d.UpdateBytesPerSecond
	if precision.WeightBytes() == 4 {
		rate = d.FP32UpdateBytesPerSecond
	}
	return over(bytes, cmp.Or(rate, d.BytesPerSecond))
}

func over(amount, rate float64) float64 {
	if rate <= 0 {
		return 0
	}
	return amount / rate
}

// Step is the time of one step where unit u is on device place[u];
// place is nil where every GPU runs the whole model. Nil in load mode, where
// a unit has no device, and where a device's rates are unknown. Units on a
// tier ([costmodel.OnCPU], [costmodel.OnDisk]) run on the first device, their parameters copied in
// every forward.
//
// The host issues kernels ahead of the device, which waits for it where
// kernels are short ([clock]). Not in it: data loading.
func Step(t *costmodel.Table, topo *costmodel.Topology, place []int) *float64 {
	if t.Workload.Mode == costmodel.Load {
		return nil
	}
	for i := range topo.Devices {
		if topo.Devices[i].FLOPS <= 0 {
			return nil
		}
	}
	for _, d := range place {
		if d < costmodel.OnDisk || d >= len(topo.Devices) {
			return nil
		}
	}
	s := timing{t: t, topo: topo, place: place}
	if !s.tiers() {
		return nil
	}
	var seconds float64
	switch w := &t.Workload; {
	case place == nil:
		seconds = s.replica()
	case w.Strategy.Traits().Staged:
		seconds = s.pipeline()
	default:
		seconds = s.inTurn()
	}
	return &seconds
}

// timing works out one step.
type timing struct {
	t     *costmodel.Table
	topo  *costmodel.Topology
	place []int
	// copied are the seconds in which each unit's parameters come from a tier.
	copied []float64
}

func (s *timing) work(u int) *costmodel.Work { return &s.t.Units[u].Work }

func (s *timing) seconds(d int, p costmodel.Pass) float64 {
	return passSeconds(&s.topo.Devices[d], p, s.t.Workload.Precision)
}

// microBatches is how often a unit runs forward and backward in a step.
func (s *timing) microBatches() float64 { return float64(max(1, s.t.Workload.MicroBatches)) }

// tokens is how many tokens are generated after the first.
func (s *timing) tokens() float64 { return float64(s.t.Workload.NewTokens) }

// updates is the time of the optimizer's step over so many bytes on device d.
func (s *timing) updates(d int, bytes float64) float64 {
	return updateSeconds(&s.topo.Devices[d], bytes, s.t.Workload.Precision)
}

// inTurn is a device map: one device works at a time, and one host thread
// issues to all.
func (s *timing) inTurn() float64 {
	var micro, token clock
	update := make([]float64, len(s.topo.Devices))
	train := s.t.Workload.Mode == costmodel.Train
	for u, d := range s.place {
		w := s.work(u)
		cross := 0.
		if u > 0 && s.place[u-1] != d {
			cross = s.topo.SendSeconds(s.place[u-1], d, s.work(u-1).Output)
		}
		// The host waits for a copy from its memory, and so does the device.
		micro.run(s.issue(d, w.Forward)+s.copied[u], s.seconds(d, w.Forward)+cross+s.copied[u])
		token.run(s.issue(d, w.Token)+s.copied[u], s.seconds(d, w.Token)+cross/float64(max(1, s.t.Workload.Seq))+s.copied[u])
		update[d] += s.updates(d, w.Update)
	}
	for u := len(s.place) - 1; u >= 0 && train; u-- {
		w, d, cross := s.work(u), s.place[u], 0.
		if u+1 < len(s.place) && s.place[u+1] != d {
			cross = s.topo.SendSeconds(s.place[u+1], d, w.Output) // the gradient
		}
		micro.run(s.issueBack(d, w.Backward), s.seconds(d, w.Backward)+cross)
	}
	return micro.times(s.microBatches()) + s.tokens()*token.device + slices.Max(update) // updates are issued to all devices at once
}
