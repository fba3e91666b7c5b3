package emit_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func openPIPlan(mode costmodel.Mode) *devicemap.Plan {
	out := &devicemap.Plan{
		Workload: costmodel.Workload{Mode: mode, Strategy: costmodel.FSDP, Runtime: "jax", Batch: 8, MicroBatches: 1, Seq: 48, World: 4, ShardDegree: 2, MemFraction: 0.9},
		Topology: costmodel.Topology{Devices: make([]costmodel.Device, 4)},
	}
	out.Model.Name = "pi0"
	return out
}

// TestOpenPI: the script that a shell runs sets what JAX reads and gives train.py the
// plan's numbers, after the config and its own words. The batch is that of all GPUs.
func TestOpenPI(t *testing.T) {
	var script bytes.Buffer
	if err := target(t, "openpi").Write(&script, openPIPlan(costmodel.Train)); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "openpi.sh")
	if os.Getenv("UPDATE_GOLDEN") == "1" {
		if err := os.WriteFile(golden, script.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(script.Bytes(), want) {
		t.Errorf("%s is\n%s, want\n%s", golden, script.Bytes(), want)
	}
	told := shell(t, script.String(), "pi0_libero", "--exp-name", "a name")
	for _, word := range []string{"0,1,2,3 0.9 run scripts/train.py pi0_libero --exp-name a name", "--fsdp-devices 2", "--batch-size 32", "--ema-decay None"} {
		if !strings.Contains(told, word) {
			t.Errorf("the shell is told %q, without %q", told, word)
		}
	}
	averaged := openPIPlan(costmodel.Train)
	averaged.Workload.EMA = true
	script.Reset()
	if err := target(t, "openpi").Write(&script, averaged); err != nil || strings.Contains(script.String(), "ema") {
		t.Errorf("%v: a moving average is OpenPI's own default: %s", err, script.String())
	}
	script.Reset()
	if err := target(t, "openpi").Write(&script, openPIPlan(costmodel.Infer)); err != nil || !strings.Contains(shell(t, script.String(), "policy:checkpoint"), "run scripts/serve_policy.py policy:checkpoint") {
		t.Errorf("%v: %s", err, script.String())
	}
	other := openPIPlan(costmodel.Train)
	other.Workload.Runtime = "torch"
	if err := target(t, "openpi").Write(&script, other); err == nil || !strings.Contains(err.Error(), "plan with runtime=jax") {
		t.Errorf("a plan for torch: %v", err)
	}
	if usage, note := target(t, "openpi").Usage(openPIPlan(costmodel.Train), "dir/run.sh"); strings.Count(usage, "dir/run.sh") != 1 || !strings.Contains(note, "pi0") {
		t.Errorf("%q, %q", usage, note)
	}
}

// shell runs a script beside an uv that says what it was told.
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
	told, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	return string(told)
}
