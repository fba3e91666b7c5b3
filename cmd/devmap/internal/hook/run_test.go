package hook

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun: Python's answers and failures, with a shell script in place of Python.
func TestRun(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no /bin/sh")
	}
	for name, c := range map[string]struct{ script, err string }{
		"runs":       {`grep -q '"engine":"accelerate"' && [ -z "$CUDA_VISIBLE_DEVICES" ] && echo '{"ok": true, "message": "it runs", "versions": "torch 2"}'`, ""},
		"an error":   {`echo '{"error": "no torch"}'`, "--run: no torch"},
		"no package": {`echo "/usr/bin/python3: No module named 'devmap'" >&2; exit 1`, "no package devmap"},
		"a crash":    {`echo trace >&2; echo "last line" >&2; exit 3`, "exit status 3: last line"},
		"noise":      {`echo hello`, "the answer of"},
		"too much":   {`head -c 2000000 /dev/zero`, "printed 2000000 bytes"},
	} {
		python := filepath.Join(t.TempDir(), "python")
		if err := os.WriteFile(python, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(pythonVariable, python)
		ran, err := Run(context.Background(), &Step{Config: "{}", Engine: "accelerate", Map: map[string]any{"a": 0}})
		switch {
		case c.err == "" && (err != nil || !ran.OK || ran.Message != "it runs" || ran.Versions != "torch 2"):
			t.Errorf("%s: %+v, %v", name, ran, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
	}
}

// TestStepEnvironment: PYTHONPATH keeps its folders, and no GPU is visible.
func TestStepEnvironment(t *testing.T) {
	t.Setenv(pythonPath, "/own")
	environment := stepEnvironment([]string{"A=1"})
	if got := strings.Join(environment, " "); !strings.Contains(got, pythonPath+"=/own") || !strings.Contains(got, "CUDA_VISIBLE_DEVICES= ") {
		t.Error(got)
	}
}
