package dags_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/benchfile"
	"github.com/devmap-dev/devmap/planner/internal/dags"
	"github.com/devmap-dev/devmap/planner/internal/pose"
)

var update = flag.Bool("update", false, "draw the lists anew")

const folder = "../../../fixtures/workloads/random"

// TestLists: the lists are those of their seeds, every line's problem has its
// sum, its form and its capacity, and no two lists share any.
func TestLists(t *testing.T) {
	seen := make(map[uint64]string)
	for name, list := range map[string]struct {
		seed uint64
		each int
	}{"tuning": {1, 6}, "trial": {2, 10}, "tuning-2": {20261128, 10}, "trial-2": {31337, 10}} {
		lines, err := dags.Draw(list.seed, list.each)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		for _, line := range lines {
			text, err := json.Marshal(line)
			if err != nil {
				t.Fatal(err)
			}
			want.Write(append(text, '\n'))
		}
		path := filepath.Join(folder, name+".jsonl")
		if *update {
			if err := os.WriteFile(path, want.Bytes(), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(data, want.Bytes()) {
			t.Fatalf("%s is not what seed %d gives (-update draws it): %v", path, list.seed, err)
		}
		if lines, err = dags.Read(path, data); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			if other, known := seen[line.Seed]; known {
				t.Errorf("%s and %s share a seed", other, line.Name())
			}
			seen[line.Seed] = line.Name()
			held(t, line)
		}
	}
}

// held is a line's problem, as drawn and as its file is read again.
func held(t *testing.T, line dags.Line) {
	t.Helper()
	problem, err := line.Problem()
	if err != nil {
		t.Fatal(err)
	}
	if err := problem.Check(); err != nil {
		t.Errorf("%s: %v", line.Name(), err)
	}
	total := 0.0
	for _, node := range problem.Nodes {
		total += node.Size
	}
	average := total / float64(problem.Devices())
	if capacity := problem.Kinds[0].Capacity; capacity < line.Capacity*average-1 || capacity > 2.5*average {
		t.Errorf("%s: a capacity of %.3f times the average", line.Name(), capacity/average)
	}
	file, err := pose.Read[*benchfile.DNNPartitioning](line.Name(), dags.File(problem))
	if err != nil {
		t.Fatal(err)
	}
	again := pose.DNNPartitioning(file)
	if !slices.Equal(again.Edges, problem.Edges) || len(again.Nodes) != line.Nodes || again.Nodes[1].Time[0] != problem.Nodes[1].Time[0] {
		t.Errorf("%s: the file holds another problem", line.Name())
	}
}

// TestOtherSum: a line that was changed by hand is not drawn.
func TestOtherSum(t *testing.T) {
	lines, err := dags.Draw(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	lines[0].Seed++
	if _, err := lines[0].Problem(); err == nil {
		t.Error("another seed gave the same sum")
	}
}
