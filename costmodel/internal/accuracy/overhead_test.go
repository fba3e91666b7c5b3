package accuracy_test

import (
	"math"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
)

// idleNVML is what NVML shows on an idle GPU of the measuring machine.
const idleNVML = 644939776

// TestOverhead checks context, kernels and NCCL against NVML's bytes beyond the allocator's pool.
// Pipelines in one process after others (dist_more.json) show 392 MiB less for the first send, in
// two sessions on equal machines; the cause is unknown, and they are logged.
func TestOverhead(t *testing.T) {
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	dev := gpu.Device(costmodel.Train)
	used := 0
	for _, r := range distRows(t) {
		bound := 5.0
		if r.w.Strategy == costmodel.Pipeline {
			bound = 7
		}
		comm, _, _, _ := catalogue.Overhead(&r.w)
		table := costmodel.Table{Workload: r.w, Comm: comm}
		for rank := range r.ranks {
			m := &r.ranks[rank]
			measured := m.NVML - m.Reserved - idleNVML
			got := table.Overhead(rank, &dev)
			percent := 100 * (float64(got)/float64(measured) - 1)
			t.Logf("%-44s %d  predicted %8.1f MiB  measured %8.1f  %+6.2f %%", r.name, rank, float64(got)/(1<<20), float64(measured)/(1<<20), percent)
			if r.shared {
				continue
			}
			used++
			if math.Abs(percent) > bound {
				t.Errorf("%s rank %d: off by %+.2f %%; the bound is %g %%", r.name, rank, percent, bound)
			}
		}
	}
	if used < 28 {
		t.Errorf("only %d ranks", used)
	}
}

// TestSlack: the pool's range beyond the peak contains nine of ten measured GPUs, and its mean
// width is at most 15 % of the peak.
func TestSlack(t *testing.T) {
	var used, all int
	var width float64
	add := func(s [2]float64, peak, reserved int64) {
		got := float64(reserved)/float64(peak) - 1
		all++
		width += s[1] - s[0]
		if got >= s[0] && got <= s[1] {
			used++
		}
	}
	for _, r := range distRows(t) {
		_, body, head, _ := catalogue.Overhead(&r.w)
		for rank, m := range r.ranks {
			last := rank == len(r.ranks)-1 || r.w.Strategy != costmodel.Pipeline
			if last {
				add(head, m.Peak, m.Reserved)
			} else {
				add(body, m.Peak, m.Reserved)
			}
		}
	}
	for _, r := range measuredRows(t) {
		devices := predictRow(t, &r)
		for d, reserved := range r.reserved {
			if reserved == 0 || r.peak[d] < 1<<30 {
				continue
			}
			p := devices[d].Predicted
			total := float64(p.PeakAllocatedBytes)
			add([2]float64{float64(p.SlackBytes[0]) / total, float64(p.SlackBytes[1]) / total}, r.peak[d], reserved)
		}
	}
	t.Logf("%d of %d GPUs within the range, which is on average %.1f %% of the peak wide", used, all, 100*width/float64(all))
	if all < 200 || float64(used) < .9*float64(all) || width > .15*float64(all) {
		t.Error("nine in ten GPUs must lie in a range of at most 15 %")
	}
}
