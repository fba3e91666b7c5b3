package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/devmap-dev/devmap/executor/report"
)

// ranReports returns the reports that a run prints, in order.
func ranReports(t *testing.T, status int, args ...string) (all []report.Report) {
	t.Helper()
	for decoder := jsontext.NewDecoder(bytes.NewReader(devmap(t, status, append([]string{"run"}, args...)...))); decoder.PeekKind() == '{'; {
		var one report.Report
		if err := json.UnmarshalDecode(decoder, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestTurns: plans alternate, and each turn begins like the first. The dump is from the first turn,
// and the saved model from the last.
func TestTurns(t *testing.T) {
	t.Parallel()
	one := plannedToy(t, "--gpus", "1", "--mode", "train")
	other := plannedToy(t, "--gpus", "2")
	reports := ranReports(t, 0, one, other, "--weights", "random", "--cycles", "2", "--steps", "2", "--json")
	var order []string
	for i := range reports {
		order = append(order, reports[i].Plan)
	}
	if !slices.Equal(order, []string{one, other, one, other}) {
		t.Fatalf("they ran in the order %q", order)
	}
	for step := range 2 {
		if first, again := *reports[0].Steps[step].Loss, *reports[2].Steps[step].Loss; first != again {
			t.Errorf("step %d: losses %v and %v", step+1, first, again)
		}
	}
	dir := t.TempDir()
	dumped, saved := filepath.Join(dir, "logits"), filepath.Join(dir, "model")
	if ran := ranReports(t, 0, one, "--weights", "random", "--cycles", "3", "--json", "--dump", "logits="+dumped, "--save", saved); len(ran) != 3 {
		t.Errorf("%d turns", len(ran))
	}
	for _, name := range []string{dumped, saved} {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
	devmap(t, 2, "run", one, "--cycles", "0")
}
