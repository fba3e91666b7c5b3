package planner_test

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// pipelineRow is one rank of a run of measure_dist.py.
type pipelineRow struct {
	Case         string
	Error        string
	Bounds       [][2]int // layers of each stage
	MicroBatches int64    `json:"micro_batches"`
	World        int64
	Peak         int64 `json:"peak_allocated"`
}

// pipelineRuns are the measured pipelines, by case: every rank's row.
func pipelineRuns(t *testing.T) [][]pipelineRow {
	t.Helper()
	var runs [][]pipelineRow
	files, err := filepath.Glob("../fixtures/measured/dist_*1f1b_*.json")
	if err != nil {
		t.Fatal(err)
	}
	gpipe, err := filepath.Glob("../fixtures/measured/dist_gpipe_*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Concat(files, gpipe) {
		var ranks []pipelineRow
		read(t, f, &ranks)
		runs = append(runs, ranks)
	}
	var more map[string][]pipelineRow
	read(t, "../fixtures/measured/dist_more.json", &more)
	for _, ranks := range more {
		engine, _, _ := strings.Cut(ranks[0].Case, ":")
		if _, ok := schedules[engine]; ok && ranks[0].Error == "" {
			runs = append(runs, ranks)
		}
	}
	slices.SortFunc(runs, func(a, b []pipelineRow) int { return strings.Compare(a[0].Case, b[0].Case) })
	return runs
}

var schedules = map[string]costmodel.ScheduleKind{"gpipe": costmodel.GPipe, "1f1b": costmodel.OneFOneB, "i1f1b": costmodel.Interleaved}

// predictPipeline is the check of the run's stages: the embedding on the
// first, norm and head on the last.
func predictPipeline(t *testing.T, ranks []pipelineRow) *devicemap.Report {
	t.Helper()
	r := &ranks[0]
	parts := strings.Split(r.Case, ":")
	g, err := hf.FromConfig("config.json", []byte(peerConfigs[parts[1]]))
	if err != nil {
		t.Fatal(err)
	}
	batch, _ := strconv.ParseInt(parts[2], 10, 64)
	seq, _ := strconv.ParseInt(parts[3], 10, 64)
	w := costmodel.Workload{
		Mode: costmodel.Train, Strategy: costmodel.Pipeline, Schedule: schedules[parts[0]], World: r.World,
		Batch: batch, Seq: seq, MicroBatches: r.MicroBatches, Precision: costmodel.BF16True, Optimizer: costmodel.AdamW,
	}
	if strings.Contains(r.Case, "ckpt") {
		w.Recompute = costmodel.RecomputeFull
	}
	w, err = estimate.Resolve(g, w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{}
	for range r.World {
		topo.Devices = append(topo.Devices, gpu.Device(w.Mode))
	}
	return devicemap.Check(g, table, topo, stageMap(g, r), nil)
}

func stageMap(g *modelgraph.Graph, r *pipelineRow) devicemap.Flat {
	last := len(r.Bounds) - 1
	var flat devicemap.Flat
	for u := range g.Units {
		name := g.Units[u].Name
		stage := 0
		switch n, ok := strings.CutPrefix(name, "model.layers."); {
		case ok:
			i, _ := strconv.Atoi(n)
			stage = slices.IndexFunc(r.Bounds, func(b [2]int) bool { return i < b[1] })
		case name == "model.norm" || name == "lm_head":
			stage = last
		}
		flat = append(flat, devicemap.Entry{Key: name, Device: devicemap.Device(stage % int(r.World))})
	}
	return flat
}

// pipelineBound is the largest error in percent.
const pipelineBound = .5

// TestPipelineAccuracy predicts the allocated peak of every rank of every
// pipeline that was measured under torch.distributed.pipelining on 4 × H200.
func TestPipelineAccuracy(t *testing.T) {
	var table strings.Builder
	var off []float64
	fmt.Fprintf(&table, "\n%-44s GPU  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for _, ranks := range pipelineRuns(t) {
		report := predictPipeline(t, ranks)
		for _, f := range report.Faults {
			t.Error(f)
		}
		name := ranks[0].Case
		for d := range ranks {
			got, measured := report.Devices[d].Predicted, ranks[d].Peak
			percent := 100 * (float64(got.PeakAllocatedBytes)/float64(measured) - 1)
			off = append(off, math.Abs(percent))
			fmt.Fprintf(&table, "%-44s %3d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", name, d, costmodel.Bytes(got.PeakAllocatedBytes).GiB(),
				costmodel.Bytes(measured).GiB(), percent, float64(got.PeakAllocatedBytes-measured)/(1<<20), got.PeakAt)
			if math.Abs(percent) > pipelineBound {
				t.Errorf("%s, GPU %d: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", ranks[0].Case, d, got.PeakAllocatedBytes, measured, percent, pipelineBound)
			}
			name = ""
		}
	}
	if len(off) < 12 {
		t.Fatalf("%d ranks", len(off))
	}
	slices.Sort(off)
	fmt.Fprintf(&table, "pipelines  %2d peaks: median error %.3f %%, worst %.3f %%\n", len(off), off[len(off)/2], off[len(off)-1])
	t.Log(table.String())
}
