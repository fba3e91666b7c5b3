package accuracy_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// predictPipeline is the check of the run's stages.
func predictPipeline(t *testing.T, r *distRow) *devicemap.Report {
	t.Helper()
	// They call the blocks without a mask, whatever the model's window.
	config := bytes.Replace(stageConfig(t, r.model), []byte(`"sliding_window": 4096`), []byte(`"sliding_window": null`), 1)
	g, table := costsOf(t, config, r.w)
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	topo := &costmodel.Topology{Devices: slices.Repeat([]costmodel.Device{gpu.Device(r.w.Mode)}, int(r.w.World))}
	return devicemap.Check(g, table, topo, r.place(g).Flatten(g), nil)
}

// stageConfig is the config of what measure_dist.py's stages run: they call the
// head alone, without the soft cap that Gemma 2's model puts after it.
func stageConfig(t *testing.T, model string) []byte {
	t.Helper()
	return bytes.Replace(distConfig(t, model), []byte("{"), []byte(`{"final_logit_softcapping": null,`), 1)
}

// pipelineBound is the largest error in percent.
const pipelineBound = .5

// TestPipelineAccuracy predicts the allocated peak of every rank of every
// pipeline that was measured under torch.distributed.pipelining on 4 × H200.
func TestPipelineAccuracy(t *testing.T) {
	var table strings.Builder
	var off []float64
	fmt.Fprintf(&table, "\n%-44s GPU  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for _, r := range distRows(t) {
		if r.w.Strategy != costmodel.Pipeline {
			continue
		}
		report := predictPipeline(t, &r)
		for _, f := range report.Faults {
			t.Error(f)
		}
		name := r.name
		for d := range r.ranks {
			got, measured := report.Devices[d].Predicted, r.ranks[d].Peak
			percent := 100 * (float64(got.PeakAllocatedBytes)/float64(measured) - 1)
			off = append(off, math.Abs(percent))
			fmt.Fprintf(&table, "%-44s %3d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", name, d, gib(got.PeakAllocatedBytes),
				gib(measured), percent, float64(got.PeakAllocatedBytes-measured)/(1<<20), got.PeakAt)
			if math.Abs(percent) > pipelineBound {
				t.Errorf("%s, GPU %d: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", r.name, d, got.PeakAllocatedBytes, measured, percent, pipelineBound)
			}
			name = ""
		}
	}
	if len(off) < 12 {
		t.Fatalf("%d ranks", len(off))
	}
	summary(t, &table, "pipelines", off)
	t.Log(table.String())
}
