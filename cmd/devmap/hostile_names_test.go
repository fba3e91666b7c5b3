package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/fixtures"
)

// forged is a name that, printed raw, would end a line and begin another, colour the terminal and
// change the direction of reading.
const forged = "x\nFORGED: all is well\x1b[31m\u009b1m\u202e\x00y"

// broken is the end of a name that forges only a line.
const broken = "\nFORGED"

// TestNothingForges: no command prints a name from a file, a flag, a path or the environment raw.
func TestNothingForges(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub"+broken))
	put := func(name, format string, args ...any) string {
		for i, a := range args {
			text := fixtures.Must(json.Marshal(a))(t)
			args[i] = string(text)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	layers := `{"format_version":"devmap.model/v1","name":%s,"layers":[` +
		`{"name":%s,"declared":{"params_bytes":5368709120,"activation_bytes":1}},{"name":"b"},{"name":"c.0"},{"name":"c.1"},{"name":%s,"params":[{"name":%s,"shape":[4],"dtype":"bf16"}]}]}`
	model := put("d\nFORGED/m.json", layers, forged, forged, forged+"2", forged)
	cycle := put("cycle.json", `{"format_version":"devmap.model/v1","name":"m","layers":[{"name":%s,"inputs":["b"]},{"name":"b","inputs":[%s]}]}`, forged, forged)
	unknown := put("unknown.json", `{"format_version":"devmap.model/v1",%s:1}`, forged)
	config := put("net\nFORGED/config.json", `{"model_type":%s,"architectures":[%s]}`, forged, forged)
	flat := put("map\nFORGED.json", `{%s:0,%s:1,"b":%s,"c":7}`, forged+"3", forged+".a", forged)
	topology := put("topology.json", `{"format_version":"devmap.topology/v1","devices":[{"name":%s,"host":%s,"capacity_bytes":8589934592},{"name":"b","host":%s,"capacity_bytes":8589934592}]}`, forged, forged, forged)
	nameless := put("nameless.json", `{"format_version":"devmap.topology/v1","devices":[{"name":%s}]}`, forged)
	plan := filepath.Join(dir, "plan"+broken+".json")
	header := fixtures.Must(json.Marshal(map[string]any{forged: map[string]any{"dtype": "F32", "shape": []int{2}, "data_offsets": []int{0, 8}}}))(t)
	tensors := filepath.Join(dir, "t"+broken+".safetensors")
	raw := append([]byte{byte(len(header)), byte(len(header) >> 8), 0, 0, 0, 0, 0, 0}, header...)
	if err := os.WriteFile(tensors, append(raw, "12345678"...), 0o600); err != nil {
		t.Fatal(err)
	}
	hostile := func(code int, args ...string) {
		t.Helper()
		var out, problems bytes.Buffer
		got := run(context.Background(), args, &out, &problems)
		for _, s := range []string{out.String(), problems.String()} {
			for line := range strings.Lines(s) {
				if strings.HasPrefix(strings.TrimSpace(line), "FORGED") || strings.ContainsAny(line, "\x1b\u009b\u202e\x00\r") {
					t.Errorf("%q: %q", args, line)
				}
			}
		}
		if got != code {
			t.Errorf("%q: status %d, not %d: %s", args, got, code, problems.String())
		}
		if len(out.String()) < 2 && problems.Len() < 2 {
			t.Errorf("%q printed nothing", args)
		}
	}
	hostile(0, "plan", model, "--gpus", "2", "--explain", "-o", plan)
	hostile(2, "plan", model, "--gpus", "2", "--mode", "train")
	hostile(0, "plan", model, "--topology", topology, "--mode", "load", "--explain")
	hostile(0, "plan", model, "--gpus", "2", "--mode", "load", "--contiguous=false", "--explain")
	hostile(0, "plan", model, "--gpus", "2", "--objective", "front")
	hostile(3, "plan", model, "--gpus", "1GiB,1GiB", "--mode", "load")
	hostile(0, "plan", model, "--gpus", "6GiB,1GiB", "--mode", "load", "--offload", "cpu")
	hostile(0, "inspect", model)
	hostile(0, "inspect", model, "--json")
	hostile(0, "estimate", model, "--gpus", "2")
	hostile(0, "check", model, plan)
	hostile(4, "check", model, flat, "--gpus", "2", "--mode", "load")
	hostile(4, "check", model, flat, "--gpus", "2", "--mode", "load", "--json")
	hostile(0, "emit", plan, "--for", "accelerate")
	hostile(1, "emit", flat, "--for", "accelerate")
	hostile(0, "inspect", tensors)
	hostile(0, "plan", tensors, "--gpus", "1", "--mode", "load")
	for _, bad := range []string{cycle, unknown, config, filepath.Dir(config), filepath.Join(dir, "none"+broken), "a\nFORGED", "a/b"} {
		hostile(1, "inspect", bad)
	}
	hostile(1, "plan", model, "--topology", nameless)
	for _, flag := range []string{"--pin=" + forged + "z=0", "--pin=" + forged, "--together=" + forged, "--gpus=" + forged, "--gpu=" + forged, "--reserve=" + forged, "--mode=" + forged, "--runtime=" + forged, "--batch=" + forged, "--precision=" + forged, "--" + forged, "--topology=" + forged + "\x00"} {
		args := []string{"plan", model, flag}
		if !strings.HasPrefix(flag, "--gpus") && !strings.HasPrefix(flag, "--topology") {
			args = append(args, "--gpus", "2")
		}
		code := out.ExitUsage
		if strings.HasPrefix(flag, "--topology") {
			code = out.ExitError
		}
		hostile(code, args...)
	}
	hostile(2, forged)
	hostile(2, "help", forged)
	hostile(2, "plan", model, forged)
	hostile(2, "emit", plan, "--for", forged)
	hostile(2, "plan", model, "--gpus", "2", "-o", model)
	hostile(1, "plan", model, "--gpus", "2", "-o", filepath.Join(dir, "no"+broken, "x"))
	hostileRuns(t, dir, hostile)
}

// hostileRuns runs a plan with such names around it.
func hostileRuns(t *testing.T, dir string, hostile func(code int, args ...string)) {
	t.Helper()
	planned := filepath.Join(dir, "runs"+broken+".json")
	data := fixtures.Must(os.ReadFile(plannedToy(t, "--gpus", "1")))(t)
	for name, text := range map[string]string{planned: string(data), planned + "l": "[1,\x1b]", planned + "d": strings.Replace(string(data), "sha256:", "sha256:0", 1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hostile(2, "run", planned)
	hostile(0, "run", planned, "--weights", "random")
	hostile(0, "run", planned, "--weights", "random", "--json")
	hostile(0, "run", planned, "--weights", "random", "--dump", "logits="+planned+"s", "-o", planned+"o")
	hostile(1, "run", planned+"d", "--weights", "random")
	hostile(2, "run", planned, "--weights", "random", "--tokens", planned+"l")
	hostile(2, "run", planned, "--weights", "random", "--save", dir)
	hostile(2, "run", planned, planned, "--weights", "random", "--save", planned+"new")
	hostile(1, "run", planned, "--resume", forged)
	hostile(2, "run", planned, "--weights", "random", "--dump", "logits="+planned)
	for _, flag := range []string{"--stop", "--dump", "--betas", "--lr", "--weights", "--backend", "--fault", "--devices"} {
		hostile(2, "run", planned, "--weights", "random", flag, forged)
	}
}
