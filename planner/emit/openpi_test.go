package emit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestOpenPI: the script that a shell runs sets what JAX reads and gives train.py the
// plan's numbers, after the config and its own words. The batch is that of all GPUs.
func TestOpenPI(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	input := golden(t, "jax")
	script, err := written(target(t, "openpi"), input)
	if err != nil {
		t.Fatal(err)
	}
	reported := shell(t, script, "pi0_libero", "--exp-name", "a name")
	for _, word := range []string{"0,1,2,3 0.9 run scripts/train.py pi0_libero --exp-name a name", "--fsdp-devices 2", "--batch-size 32", "--ema-decay None"} {
		if !strings.Contains(reported, word) {
			t.Errorf("the shell is told %q, without %q", reported, word)
		}
	}
	t.Setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
	if reported := shell(t, script); !strings.HasPrefix(reported, "4,5,6,7 0.9 ") {
		t.Errorf("the caller's GPUs are not kept: %s", reported)
	}
	input.Plan.Workload.EMA = true
	if script, err := written(target(t, "openpi"), input); err != nil || strings.Contains(script, "ema") {
		t.Errorf("%v: a moving average is OpenPI's own default: %s", err, script)
	}
	input.Plan.Workload.Mode = costmodel.Infer
	script, err = written(target(t, "openpi"), input)
	if err != nil || !strings.Contains(shell(t, script, "policy:checkpoint"), "run scripts/serve_policy.py policy:checkpoint") {
		t.Errorf("%v: %s", err, script)
	}
}

// shell runs a script with a uv that prints its arguments.
func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"uv": "#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES $XLA_PYTHON_CLIENT_MEM_FRACTION $*\"\n", "run.sh": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command(sh, append([]string{filepath.Join(dir, "run.sh")}, args...)...)
	command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	reported, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, reported)
	}
	return string(reported)
}
