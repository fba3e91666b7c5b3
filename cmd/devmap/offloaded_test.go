package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOffloadedCommands: what a user reads of activations in host memory and of the search for a
// schedule: too little host memory is a plan that does not fit, with changes.
func TestOffloadedCommands(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "host.json")
	gpu := `{"name": "h100-80gb", "capacity_bytes": 9663676416}`
	if err := os.WriteFile(file, []byte(`{"format_version": "devmap.topology/v1", "host_memory_bytes": 2450000000, "devices": [`+gpu+`, `+gpu+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags  string // after a command
		status int
		want   string
	}{
		{"plan --topology " + file + " --offload-activations full", 3, "69.9 MiB too little. Another cut may need less"},
		{"plan --topology " + file + " --offload-activations full", 3, "\n  --offload-activations auto: fullest GPU"},
		{"plan --topology " + file + " --offload-activations full", 3, "\n  --recompute full: fullest GPU"},
		{"plan --gpus 2 --offload-activations auto --objective memory", 2, "the least memory is that of --offload-activations full --recompute full"},
		{"plan --gpus 2 --recompute auto --objective memory", 2, "the least memory is that of --recompute full"},
		{"estimate --topology " + file + " --offload-activations full", 2, "69.9 MiB too little. Another cut may need less"},
		{"plan --gpus 2 --schedule auto", 0, "--recompute auto adds the choice of blocks"},
		{"plan --gpus 2 --offload-activations full", 0, " of host memory."},
		{"plan --gpus 1GiB,1GiB", 3, "tried, alone and together: --offload-activations full, --recompute full, "},
	} {
		var document, errs bytes.Buffer
		args := test.flags + " llama-3.2-1b --mode train --batch 8 --strategy pipeline --micro-batches 8 --runtime devmap"
		if status := run(t.Context(), strings.Fields(args), &document, &errs); status != test.status || !strings.Contains(errs.String(), test.want) {
			t.Errorf("%s: status %d, not %d with %q:\n%s", test.flags, status, test.status, test.want, &errs)
		}
	}
}

// TestRecomputationGiven: who names the recomputed blocks needs no note about choosing them.
func TestRecomputationGiven(t *testing.T) {
	t.Parallel()
	var document, errs bytes.Buffer
	args := "plan --gpus 2 --schedule auto --recompute none llama-3.2-1b --mode train --batch 8 --strategy pipeline --micro-batches 8 --runtime devmap"
	if status := run(t.Context(), strings.Fields(args), &document, &errs); status != 0 || strings.Contains(errs.String(), "adds the choice of blocks") {
		t.Errorf("status %d:\n%s", status, &errs)
	}
}
