package pose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/parallelstages"
)

func piperFile(t *testing.T, name string) *benchfile.Piper {
	t.Helper()
	path := "../../../fixtures/workloads/piper/" + name + ".json"
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := Read[*benchfile.Piper](path, data)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestParallelPiper holds the solver to what Piper's program finds (d7fc8cf,
// runDP, 25 GiB/s), printed to five digits, and to a proof. 0: it finds none.
func TestParallelPiper(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		file    string
		devices int
		memory  float64 // GiB
		time    float64
	}{
		{"bert32a100", 32, 1, 0},
		{"bert32a100", 128, 1, 0.038872},
		{"bert32a100", 32, 2, 0.066550},
		{"bert32a100", 8, 8, 0.16586},
		{"bert32a100", 32, 8, 0.041516},
		{"bert32a100", 64, 8, 0.020201},
		{"bert32a100", 8, 80, 0.12201},
		{"bert32a100", 512, 80, 0.0022725},
		{"resnet", 8, 4, 73.493},
		{"resnet", 8, 8, 63.434},
		{"resnet", 16, 2, 76.521},
		{"resnet", 32, 8, 15.758},
		{"resnet", 64, 1.5, 16.992},
		{"resnet", 128, 1, 19.856},
		{"gnmt", 2, 2.5, 263.354},
		{"gnmt", 8, 0.6, 0},
	} {
		t.Run(fmt.Sprintf("%s on %d of %v GiB", want.file, want.devices, want.memory), func(t *testing.T) {
			t.Parallel()
			file := piperFile(t, want.file)
			problem, err := ParallelPiper(file, want.devices, want.memory*gib, 25*gib, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parallelstages.Solve(context.Background(), problem, parallelstages.Settings{})
			var none *parallelstages.InfeasibleError
			if want.time == 0 {
				if !errors.As(err, &none) || !none.Proved {
					t.Errorf("%+v, %v; want none, with a proof", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			const digits = 5e-5 / 2
			if got.Value > want.time*(1+digits) || !got.Optimal() {
				t.Errorf("%v (%s), want at most %v, with a proof", got.Value, got.Status, want.time)
			}
		})
	}
}

// TestParallelPiperDegrees: a degree that is given is that of every stage, and
// degrees of 1 are the straight pipeline's.
func TestParallelPiperDegrees(t *testing.T) {
	t.Parallel()
	file := piperFile(t, "bert32a100")
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
		problem, err := ParallelPiper(file, 16, 80*gib, 25*gib, want.data, want.tensor)
		if want.err != "" {
			if err == nil || !strings.Contains(err.Error(), want.err) {
				t.Errorf("%v, want %q", err, want.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := parallelstages.Solve(context.Background(), problem, parallelstages.Settings{})
		if err != nil || !got.Optimal() {
			t.Fatalf("%+v, %v", got, err)
		}
		for i, stage := range got.Stages {
			if want.data > 0 && stage.Data != want.data || want.tensor > 0 && stage.Tensor != want.tensor {
				t.Errorf("stage %d of %+v: %+v", i, want, stage)
			}
		}
	}
	problem, err := ParallelPiper(file, 16, 8*gib, 25*gib, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parallelstages.Solve(context.Background(), problem, parallelstages.Settings{})
	if err != nil || got.Value > 0.100427+1e-6 || got.Value < 0.100427-1e-6 {
		t.Errorf("straight: %+v, %v; Piper's program gives 0.100427 with both kinds of parallelism off", got, err)
	}
}

func TestWriteParallelPiper(t *testing.T) {
	t.Parallel()
	file := piperFile(t, "bert32a100")
	problem, err := ParallelPiper(file, 32, 2*gib, 25*gib, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := parallelstages.Solve(context.Background(), problem, parallelstages.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := WriteParallelPiper(&text, file, &got.Plan); err != nil {
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
