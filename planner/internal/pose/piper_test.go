package pose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// gib is the unit of the published figures, of memory and of bandwidth.
const gib = 1 << 30

func bert(t *testing.T) *benchfile.Piper {
	t.Helper()
	const file = "../../../fixtures/workloads/piper/bert32a100.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Read[*benchfile.Piper](file, data)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestPiperBERT32 holds the solver to Piper's own times with both kinds of
// parallelism off (its program, which reports 1e-6 s), and to a proof.
func TestPiperBERT32(t *testing.T) {
	t.Parallel()
	w := bert(t)
	for _, want := range []struct {
		devices int
		memory  float64 // GiB
		time    float64 // s
	}{
		{8, 8, 0.165856},
		{16, 8, 0.100427},
		{32, 8, 0.073906},
		{8, 80, 0.164516},
		{16, 80, 0.099749},
		{32, 80, 0.073906},
	} {
		t.Run(fmt.Sprintf("%d of %v GiB", want.devices, want.memory), func(t *testing.T) {
			t.Parallel()
			p, err := Piper(w, want.devices, want.memory*gib, 25*gib)
			if err != nil {
				t.Fatal(err)
			}
			s, err := stages.Solve(context.Background(), p, stages.Settings{})
			if err != nil {
				t.Fatal(err)
			}
			if _, largest, err := p.Score(s.Stage, s.Choice); err != nil || largest != s.Value {
				t.Errorf("scored %v (%v), said %v", largest, err, s.Value)
			}
			if s.Value > want.time+1e-6 || !s.Optimal() {
				t.Errorf("%v s a sample (optimal %v), want at most %v", s.Value, s.Optimal(), want.time)
			}
		})
	}
}

// TestPiperBERT32TooSmall: the proof that 1 and 2 GiB are too little for any
// number of devices.
func TestPiperBERT32TooSmall(t *testing.T) {
	t.Parallel()
	w := bert(t)
	for memory := 1.0; memory <= 2; memory++ {
		for _, devices := range []int{1, 8, 64} {
			p, err := Piper(w, devices, memory*gib, 25*gib)
			if err != nil {
				t.Fatal(err)
			}
			_, err = stages.Solve(context.Background(), p, stages.Settings{})
			var none *stages.InfeasibleError
			if !errors.As(err, &none) {
				t.Fatalf("%d devices of %v GiB: %v", devices, memory, err)
			}
			if !none.Proved || none.Enough != 0 || none.Missing() <= 0 {
				t.Errorf("%d devices of %v GiB: %+v", devices, memory, none)
			}
			// What it asks for is enough, and no less is.
			p.Capacity = none.Least
			if _, err := stages.Solve(context.Background(), p, stages.Settings{}); err != nil {
				t.Errorf("%d devices of %v bytes: %v", devices, p.Capacity, err)
			}
			p.Capacity = none.Least - 1000
			if _, err := stages.Solve(context.Background(), p, stages.Settings{}); !errors.As(err, &none) {
				t.Errorf("%d devices of %v bytes: %v", devices, p.Capacity, err)
			}
		}
	}
}

// TestPiperUnits: the file's own bandwidth, 25·10⁹, is not that of the
// figures.
func TestPiperUnits(t *testing.T) {
	t.Parallel()
	w := bert(t)
	p, err := Piper(w, 8, 8e9, w.Bandwidth)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stages.Solve(context.Background(), p, stages.Settings{})
	// Piper's program in these units: 0.17542468416.
	if err != nil || s.Value > 0.17542468416+1e-9 || s.Value < 0.165856 || !s.Optimal() {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestWritePiper(t *testing.T) {
	t.Parallel()
	w := bert(t)
	p, err := Piper(w, 4, 80*gib, 25*gib)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stages.Solve(context.Background(), p, stages.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := WritePiper(&text, w, s); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Stages []struct {
			Nodes   []int
			TMPCids [][2]any
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for i, stage := range got.Stages {
		if len(stage.Nodes) != len(stage.TMPCids) {
			t.Errorf("stage %d: %d nodes, %d configurations", i, len(stage.Nodes), len(stage.TMPCids))
		}
		ids = append(ids, stage.Nodes...)
	}
	slices.Sort(ids)
	if len(got.Stages) != 4 || len(slices.Compact(ids)) != len(w.Nodes) {
		t.Errorf("%d stages, %d nodes of %d", len(got.Stages), len(ids), len(w.Nodes))
	}
}

func TestPiperSyncs(t *testing.T) {
	t.Parallel()
	w := bert(t)
	w.Nodes[1].Configs[1][0].SyncForward = map[int]float64{0: 5}
	if _, err := Piper(w, 4, 80*gib, 25*gib); err == nil {
		t.Error("configurations that synchronise differently: no error")
	}
	delete(w.Nodes[1].Configs, 1)
	if _, err := Piper(w, 4, 80*gib, 25*gib); err == nil {
		t.Error("no configuration of degree 1: no error")
	}
}
