package accuracy_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Bounds on step time: each row within a fifth, and two rows of one model that differ by more than
// a fifth in the right order.
const (
	timeBound = 0.20
	sureApart = 1.20
)

// timed are the rows with predicted steps, without FSDP2's reshard_after_forward=False, which
// devmap does not model.
func timed(t *testing.T) []distRow {
	t.Helper()
	return slices.DeleteFunc(distRows(t), func(r distRow) bool {
		return len(r.ranks[0].Seconds) < 2 || strings.Contains(r.name, "noreshard")
	})
}

// seconds is the step of the slowest rank, the mean of the iterations after the first.
func (r *distRow) seconds() float64 {
	slowest := 0.
	for i := range r.ranks {
		later, sum := r.ranks[i].Seconds[1:], 0.
		for _, s := range later {
			sum += s
		}
		slowest = max(slowest, sum/float64(len(later)))
	}
	return slowest
}

// last is the last iteration of the slowest rank.
func (r *distRow) last() float64 {
	slowest := 0.
	for i := range r.ranks {
		slowest = max(slowest, r.ranks[i].Seconds[len(r.ranks[i].Seconds)-1])
	}
	return slowest
}

// tokens of all GPUs in a step.
func (r *distRow) tokens() float64 {
	n := r.w.Batch * r.w.Seq
	if r.w.Strategy.Traits().Replicated {
		n *= r.w.World
	}
	return float64(n)
}

// stepSeconds is the step that devmap expects of the row.
func (r *distRow) stepSeconds(t *testing.T) float64 {
	t.Helper()
	config := distConfig(t, r.model)
	if r.w.Strategy == costmodel.Pipeline { // measure_dist.py's Stage.forward has no cap
		config = stageConfig(t, r.model)
	}
	g, table := costsOf(t, config, r.w)
	w := table.Workload
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{}
	for range w.World {
		topo.Devices = append(topo.Devices, gpu.Device(w.Mode))
	}
	s := devicemap.StepSeconds(table, topo, r.place(g))
	if s == nil {
		t.Fatalf("%s: no step time", r.name)
	}
	return *s
}

// TestStepTime predicts the step of every case that was measured on 4 × H200
// and compares it with the measurement ("make accuracy").
func TestStepTime(t *testing.T) {
	rows := timed(t)
	predicted, measured := make([]float64, len(rows)), make([]float64, len(rows))
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-40s predicted  measured    error   (seconds a step)\n", "case")
	for i := range rows {
		r := &rows[i]
		measured[i], predicted[i] = r.seconds(), r.stepSeconds(t)
		off := predicted[i]/measured[i] - 1
		fmt.Fprintf(&table, "%-40s %9.4f %9.4f %+7.1f%%\n", r.name, predicted[i], measured[i], 100*off)
		if math.Abs(off) > timeBound {
			t.Errorf("%s: %.4f s predicted, %.4f s measured, off by %+.1f %%; the bound is %g %%", r.name, predicted[i], measured[i], 100*off, 100*timeBound)
		}
	}
	pairs, wrong := 0, 0
	for i := range rows {
		for j := range rows {
			a, b := &rows[i], &rows[j]
			apart := min(measured[i]/measured[j], a.last()/b.last()) // in both: the allocator may still grow in the first
			if a.model != b.model || apart*b.tokens()/a.tokens() < sureApart {
				continue
			}
			pairs++
			if predicted[i]/a.tokens() <= predicted[j]/b.tokens() {
				wrong++
				t.Errorf("%s takes %.2f times %s a token, and is predicted no slower (%.2f)", a.name,
					measured[i]/a.tokens()/(measured[j]/b.tokens()), b.name, predicted[i]/a.tokens()/(predicted[j]/b.tokens()))
			}
		}
	}
	fmt.Fprintf(&table, "%d pairs differ by more than a fifth a token, %d in the wrong order\n", pairs, wrong)
	t.Log(table.String())
}
