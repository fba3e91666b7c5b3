package weights

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

var (
	saved        = State{Model: "tiny", Digest: "sha256:1", Scalars: "sha256:2", Precision: "bf16", Optimizer: "adamw", Step: 7, Seed: 1 << 63, Tokens: "sha256:3"}
	savedEntries = []Entry{{"w.mean", modelgraph.F32, []int64{2, 2}}, {"w", modelgraph.BF16, []int64{2, 2}}, {"w.master", modelgraph.F32, []int64{2, 2}}}
)

func saveState(t *testing.T, folder string) {
	t.Helper()
	file := fixtures.Must(CreateState(folder, &saved, savedEntries))(t)
	for i, entry := range savedEntries {
		if err := file.WriteAt(entry.Name, 0, rawOf(i, 4, entry.DType)); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestResume: what was saved is there again, bit for bit.
func TestResume(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	saveState(t, folder)
	if got := names(t, folder); got != "[state.json state.safetensors]" {
		t.Errorf("there is %s", got)
	}
	file := fixtures.Must(safetensors.ReadFile(filepath.Join(folder, valuesName)))(t)
	for i, name := range []string{"w.master", "w.mean", "w"} { // every value is aligned
		if file.Tensors[i].Name != name {
			t.Errorf("tensor %d is %q, want %q", i, file.Tensors[i].Name, name)
		}
	}
	want := saved
	want.Step, want.Seed, want.Model = 0, 0, "moved"
	state, source, err := Resume(folder, &want, savedEntries)
	if err != nil || *state != saved {
		t.Fatalf("%v, %+v", err, state)
	}
	for i, entry := range savedEntries {
		if got, err := streamed(source, entry.Name, entry.DType); err != nil || !bytes.Equal(got, rawOf(i, 4, entry.DType)) {
			t.Errorf("%s: %v, %x", entry.Name, err, got)
		}
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}

// TestMismatch: a state of another model or optimizer is refused by what differs.
func TestMismatch(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	saveState(t, folder)
	for field, change := range map[string]func(*State){
		"digest":    func(want *State) { want.Digest = "sha256:9" },
		"scalars":   func(want *State) { want.Scalars = "sha256:9" },
		"precision": func(want *State) { want.Precision = "fp32" },
		"optimizer": func(want *State) { want.Optimizer = "sgd" },
	} {
		want := saved
		change(&want)
		_, _, err := Resume(folder, &want, savedEntries)
		var mismatch *MismatchError
		if !errors.As(err, &mismatch) || mismatch.Field != field || !strings.HasPrefix(err.Error(), filepath.Join(folder, "state.json")+": "+field+": \"") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for want, entries := range map[string][]Entry{
		`"w.square" is missing`:                            append(savedEntries[:3:3], Entry{"w.square", modelgraph.F32, []int64{2, 2}}),
		`tensor "w.mean": this run has none of that name`:  savedEntries[1:],
		`tensor "w": BF16[2 2], and this run has F32[2 2]`: {{"w", modelgraph.F32, []int64{2, 2}}},
		`tensor "w": BF16[2 2], and this run has BF16[4]`:  {{"w", modelgraph.BF16, []int64{4}}},
	} {
		if _, _, err := Resume(folder, &saved, entries); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "state.safetensors") {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

// TestStateRefused: what is no state.
func TestStateRefused(t *testing.T) {
	good := fixtures.Must(os.ReadFile(writeState(t)))(t)
	for want, text := range map[string]string{
		`format_version: "devmap.state/v2" is not "devmap.state/v1"`: strings.Replace(string(good), "state/v1", "state/v2", 1),
		`step: 0 is not a number of steps`:                           strings.Replace(string(good), `"step": 7`, `"step": 0`, 1),
		`step: 1099511627777 is not`:                                 strings.Replace(string(good), `"step": 7`, `"step": 1099511627777`, 1),
		`seed (line 9, column 11): -1: invalid syntax`:               strings.Replace(string(good), `"seed": 9223372036854775808`, `"seed": -1`, 1),
		`unknown field "stop"`:                                       strings.Replace(string(good), `"step"`, `"stop"`, 1),
		`duplicate`:                                                  strings.Replace(string(good), `"step": 7`, `"step": 7, "step": 8`, 1),
		`unexpected EOF`:                                             string(good[:20]),
		"more than a state has":                                      string(good) + strings.Repeat(" ", maxState),
	} {
		folder := t.TempDir()
		writeFile(t, filepath.Join(folder, stateName), []byte(text))
		if _, err := ReadState(folder); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), filepath.Join(folder, stateName)+": ") {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if _, _, err := Resume(t.TempDir(), &saved, savedEntries); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "state.json") {
		t.Error(err)
	}
	folder := filepath.Dir(writeState(t))
	if err := os.Truncate(filepath.Join(folder, valuesName), 100); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Resume(folder, &saved, savedEntries); err == nil || !strings.Contains(err.Error(), filepath.Join(folder, valuesName)+": byte 0: header length") {
		t.Error(err)
	}
}

func writeState(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "state")
	saveState(t, folder)
	return filepath.Join(folder, stateName)
}

// FuzzState: whatever a state.json says, it is refused in one line or says it.
func FuzzState(f *testing.F) {
	f.Add([]byte(`{"format_version":"devmap.state/v1","model":"m","digest":"d","scalars":"s","precision":"fp32","optimizer":"sgd","step":3,"seed":18446744073709551615}`))
	f.Add([]byte(`{"format_version":"devmap.state/v1","step":1e400}`))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		state, err := parseState("state.json", data)
		switch {
		case err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "state.json: ")):
			t.Errorf("%q", err)
		case err == nil && (state.Step < 1 || state.Step > maxSteps):
			t.Errorf("step %d", state.Step)
		}
	})
}
