package benchmark

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

func bert(t *testing.T) *benchfile.Piper {
	t.Helper()
	return read[*benchfile.Piper](t, "piper/bert32a100.json")
}

// TestTooSmall: 1 and 2 GiB are proved to be too little for any number of devices.
func TestTooSmall(t *testing.T) {
	t.Parallel()
	w := bert(t)
	for memory := 1.0; memory <= 2; memory++ {
		for _, devices := range []int{1, 8, 64} {
			p, err := piperProblem(w, devices, memory*gib, 25*gib, 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stages.Solve(context.Background(), p, nil)
			var none *stages.InfeasibleError
			if !errors.As(err, &none) {
				t.Fatalf("%d devices of %v GiB: %v", devices, memory, err)
			}
			if !none.Proved || none.Enough != 0 || none.Least <= memory*gib {
				t.Errorf("%d devices of %v GiB: %+v", devices, memory, none)
			}
			// The named capacity is enough, and less is not.
			p.Capacity = none.Least
			if _, err := stages.Solve(context.Background(), p, nil); err != nil {
				t.Errorf("%d devices of %v bytes: %v", devices, p.Capacity, err)
			}
			p.Capacity = none.Least - 1000
			if _, err := stages.Solve(context.Background(), p, nil); !errors.As(err, &none) {
				t.Errorf("%d devices of %v bytes: %v", devices, p.Capacity, err)
			}
		}
	}
}

// TestPiperUnits: the file's own bandwidth, 25·10⁹, is not the one of the figures.
func TestPiperUnits(t *testing.T) {
	t.Parallel()
	w := bert(t)
	p, err := piperProblem(w, 8, 8e9, w.Bandwidth, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stages.Solve(context.Background(), p, nil)
	// Piper's program gives 0.17542468416 in these units.
	if err != nil || s.Value > 0.17542468416+1e-9 || s.Value < 0.165856 || !s.Optimal() {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPiperSyncs(t *testing.T) {
	t.Parallel()
	w := bert(t)
	w.Nodes[1].Configs[1][0].SyncForward = map[int]float64{0: 5}
	if _, err := piperProblem(w, 4, 80*gib, 25*gib, 1, 1); err == nil {
		t.Error("configurations that synchronise differently: no error")
	}
	delete(w.Nodes[1].Configs, 1)
	if _, err := piperProblem(w, 4, 80*gib, 25*gib, 1, 1); err == nil {
		t.Error("no configuration of degree 1: no error")
	}
}

// TestPiperDegrees: a given degree is the degree of every stage. Degrees of 1 make the straight
// pipeline.
func TestPiperDegrees(t *testing.T) {
	t.Parallel()
	file := bert(t)
	for _, want := range []struct {
		data, tensor int
		err          string
	}{
		{2, 0, ""},
		{0, 4, ""},
		{2, 2, ""},
		{7, 0, "7 replicas of a stage do not share the 1920 micro-batches of a batch evenly: 6 and 8 do"},
		{2000, 0, "2000 replicas of a stage do not share the 1920 micro-batches of a batch evenly: 1920 does"},
		{0, 3, `no node has a configuration for tensor parallelism of degree 3, TMPCs["3"]: the file has 1, 2, 4, 8`},
		{3, 8, "a stage of 3 × 8 devices is more than the 16"},
	} {
		problem, err := piperProblem(file, 16, 80*gib, 25*gib, want.data, want.tensor)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%v, want %q", err, want.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := stages.Solve(context.Background(), problem, nil)
		if err != nil || !got.Optimal() {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, stage := range got.Stages {
			if want.data > 0 && stage.Data != want.data || want.tensor > 0 && stage.Tensor != want.tensor {
				t.Errorf("stage %d of %+v: %+v", i, want, stage)
			}
		}
	}
	problem, err := piperProblem(file, 16, 8*gib, 25*gib, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stages.Solve(context.Background(), problem, nil)
	if err != nil || got.Value > 0.100427+1e-6 || got.Value < 0.100427-1e-6 {
		t.Errorf("straight: %+v, %v; Piper's program gives 0.100427 with both kinds of parallelism off", got, err)
	}
}

func TestWritePipeline(t *testing.T) {
	t.Parallel()
	file := bert(t)
	problem, err := piperProblem(file, 32, 2*gib, 25*gib, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := stages.Solve(context.Background(), problem, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := writePipeline(&text, file, &got.Plan); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Stages []struct {
			Nodes        []int
			DataDegree   int `json:"dataParallelDegree"`
			TensorDegree int `json:"tensorParallelDegree"`
			TMPCids      [][2]any
		}
	}
	if err := json.Unmarshal(text.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	nodes, devices := 0, 0
	for i, stage := range read.Stages {
		if len(stage.Nodes) != len(stage.TMPCids) {
			t.Errorf("stage %d: %d nodes, %d configurations", i, len(stage.Nodes), len(stage.TMPCids))
		}
		nodes, devices = nodes+len(stage.Nodes), devices+stage.DataDegree*stage.TensorDegree
	}
	if nodes != len(file.Nodes) || devices == 0 || devices > 32 {
		t.Errorf("%d nodes of %d, %d devices of 32", nodes, len(file.Nodes), devices)
	}
}
