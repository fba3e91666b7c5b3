package accuracy_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// ddpRow is a run under DDP, plain or Lightning's.
type ddpRow struct {
	name, model string
	w           costmodel.Workload
	peak        []int64
}

// ddpRows are the rows of measure_dist.py and of measure_lightning.py.
func ddpRows(t *testing.T) []ddpRow {
	t.Helper()
	var rows []ddpRow
	for _, r := range distRows(t) {
		if r.w.Strategy != costmodel.DDP {
			continue
		}
		row := ddpRow{name: r.name, model: r.model, w: r.w}
		row.w.GradientViews = strings.Contains(r.name, "gbv")
		for i := range r.ranks {
			row.peak = append(row.peak, r.ranks[i].Peak)
		}
		rows = append(rows, row)
	}
	return append(rows, lightningRows(t)...)
}

func lightningRows(t *testing.T) []ddpRow {
	t.Helper()
	files, err := filepath.Glob("../../../fixtures/measured/lightning_*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var rows []ddpRow
	for _, file := range files {
		var f struct {
			Model, Precision string
			Batch, Seq       int64
			Peak             []int64 `json:"peak_allocated"`
		}
		read(t, file, &f)
		rows = append(rows, ddpRow{
			name: fmt.Sprintf("lightning:%s:%d:%d:%s", f.Model, f.Batch, f.Seq, f.Precision), model: f.Model, peak: f.Peak,
			w: costmodel.Workload{
				Mode: costmodel.Train, Strategy: costmodel.DDP, Runtime: value.Lightning, World: int64(len(f.Peak)),
				Batch: f.Batch, Seq: f.Seq, Precision: costmodel.Precision(f.Precision), Optimizer: costmodel.AdamW,
			},
		})
	}
	return rows
}

// predict is what every GPU is predicted to hold.
func (r *ddpRow) predict(t *testing.T) devicemap.Predicted {
	t.Helper()
	_, table := costsOf(t, distConfig(t, r.model), r.w)
	w := table.Workload
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{Devices: []costmodel.Device{gpu.Device(w.Mode)}}
	return devicemap.Predict(table, topo, nil)[0].Predicted
}

// TestDDPAccuracy compares the predicted with the measured allocated peak of every GPU under DDP
// and Lightning. GPUs that kept none of DDP's first buckets match the prediction; others are within
// its range. Known differences:
//   - Qwen2.5-3B with views as gradients: some optimizer states of 43 MiB pay 1 MiB more or less
//     (matrixStates of package units).
//   - 1 to 6 MiB that are not located.
func TestDDPAccuracy(t *testing.T) {
	const worst = .0005 // of the measured peak
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-40s GPU  predicted   measured    error  MiB off  at\n", "row (GiB)")
	var all []float64
	for _, r := range ddpRows(t) {
		got := r.predict(t)
		if len(got.PeakRangeBytes) != 2 || got.PeakRangeBytes[0] != got.PeakAllocatedBytes {
			t.Fatalf("%s: a range of %v around %d", r.name, got.PeakRangeBytes, got.PeakAllocatedBytes)
		}
		low, high := float64(got.PeakAllocatedBytes), float64(got.PeakRangeBytes[1])
		name := r.name
		for d, peak := range r.peak {
			m := float64(peak)
			share := max(0, (m-low)/(high-low)) // of the first buckets
			off, note := low/m-1, ""
			switch {
			case share > .9:
				off, note = high/m-1, " and all of the first buckets"
			case share > .1:
				off, note = 0, fmt.Sprintf(" and %.2f of the first buckets", share)
			}
			fmt.Fprintf(&table, "%-40s %3d %10.3f %10.3f %+7.3f%% %+8.2f  %s%s\n", name, d,
				gib(low), gib(m), 100*off, off*m/(1<<20), got.PeakAt, note)
			all = append(all, 100*math.Abs(off))
			if math.Abs(off) > worst {
				t.Errorf("%s, GPU %d: predicted %.0f to %.0f B, measured %.0f B, off by %+.2f %%", r.name, d, low, high, m, 100*off)
			}
			name = ""
		}
		if least := float64(slices.Min(r.peak)); math.Abs(low/least-1) > worst {
			t.Errorf("%s: predicted %.0f B, the least of the GPUs holds %.0f B", r.name, low, least)
		}
	}
	summary(t, &table, "DDP", all)
	t.Log(table.String())
}
