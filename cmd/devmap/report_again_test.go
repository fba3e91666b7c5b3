package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// againData is what these tests read of a page.
type againData struct {
	Facts []struct{ Name, Value string }
	Why   struct {
		Note    string
		Changes []struct {
			Text, Command, Verdict string
			Fits                   bool
			Peak                   int64 `json:"peak_bytes"`
			Seconds                *float64
		}
	}
}

// command is the arguments of the page's command; nil: it has none.
func (page *againData) command() []string {
	for _, fact := range page.Facts {
		if fact.Name == "Command" {
			return strings.Fields(fact.Value)[1:]
		}
	}
	return nil
}

// TestPageCommand: devmap report makes the command of a plan again, which gives the same plan. Changes keep
// its engine and its schedule.
func TestPageCommand(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"one GPU":       "gpt2 --gpus 1",
		"nodes":         "llama-3.1-8b --gpus 16 --nodes 2 --gpu h100-80gb --mode train --runtime megatron --tp 2 --cp 2 --pp 2 --sequence-parallel --batch 8 --micro-batches 8 --seq 4096",
		"reserve":       "gpt2 --gpus 3 --gpu rtx-4090 --reserve 2GiB,1GiB,0GiB",
		"sizes":         "gpt2 --gpus 24GiB,24GiB,48GiB --reserve 2GiB --seq 512",
		"torchtitan":    "llama-3.1-8b --preset torchtitan --gpus 8 --gpu h200-141gb --batch 1 --seq 4096",
		"zero3 offload": "llama-3.2-1b --gpus 2 --gpu rtx-4090 --mode train --strategy zero3 --offload cpu",
		"fsdp offload":  "llama-3.2-1b --gpus 2 --gpu rtx-4090 --mode train --strategy fsdp --offload cpu",
		"offload":       "llama-3.1-8b --gpus 1 --gpu rtx-4090 --offload cpu --seq 8192 --batch 4",
		"jax":           "pi0-lora --mode train --gpus 2 --gpu h200-141gb --batch 16 --shard-degree 2",
		"lengths":       "llama-3.2-1b --gpus 1 --gpu h200-141gb --batch 4 --lengths 600,4096 --packing padding-free",
		"images":        "qwen2.5-vl-3b --mode train --recompute full --gpus 1 --gpu h200-141gb --batch 2 --images 1.5,4 --seq 8192 --max-pixels 1003520",
		"1f1b":          "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --batch 16 --strategy pipeline --schedule 1f1b --micro-batches 8",
		"gpipe":         "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --batch 16 --strategy pipeline --schedule gpipe --micro-batches 8",
		"engine":        "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --batch 16 --strategy pipeline --micro-batches 8 --runtime devmap",
		"ddp":           "qwen2.5-0.5b --gpus 4 --gpu rtx-4090 --mode train --batch 2 --strategy ddp",
		"lightning":     "qwen2.5-0.5b --gpus 2 --gpu h100-80gb --mode train --batch 4 --strategy ddp --runtime lightning --precision bf16-mixed",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan, again := filepath.Join(dir, "plan.json"), filepath.Join(dir, "again.json")
			devmap(t, 0, append([]string{"plan", "-o", plan, "--time-limit", "5m"}, strings.Fields(args)...)...)
			page := pageOfPlan[againData](t, plan)
			command := page.command()
			if command == nil {
				t.Fatalf("no command: %s", page.Why.Note)
			}
			devmap(t, 0, append(command, "-o", again, "--time-limit", "5m")...)
			if was, is := withoutNotes(t, plan), withoutNotes(t, again); !reflect.DeepEqual(was, is) {
				t.Errorf("%q gives another plan", command)
			}
			for _, change := range page.Why.Changes {
				if strings.Contains(change.Text, "--runtime") || strings.Contains(change.Text, "--schedule") {
					t.Errorf("the change %q has another engine or schedule", change.Text)
				}
			}
		})
	}
}

// withoutNotes is a plan without the notes on what its command left out.
func withoutNotes(t *testing.T, file string) (plan map[string]any) {
	t.Helper()
	text := fixtures.Must(os.ReadFile(file))(t)
	if err := json.Unmarshal(text, &plan); err != nil {
		t.Fatal(err)
	}
	delete(plan, "warnings")
	return plan
}

// TestPageChangesHold: the commands of changes give what the page says: of open degrees, of tight plans, and
// of different GPUs. They name no decoder's length.
func TestPageChangesHold(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"llama-3.2-1b --gpus 8 --gpu h100-80gb --mode train --runtime megatron --tp auto --dp auto --batch 32 --micro-batches 8",
		"llama-3.2-1b --gpus 8 --gpu h100-80gb --mode train --strategy pipeline --tp auto --dp auto --uniform --batch 32 --micro-batches 8",
		"llama-3.2-1b --gpus 8 --gpu h100-80gb --mode train --runtime megatron --tp 2 --pp 2 --batch 8 --micro-batches 8",
		"qwen2.5-3b --gpus 4 --gpu a10g-24gb --mode train --batch 4 --seq 2048 --recompute full",
		"llama-3.1-8b --gpus 24GiB,24GiB,48GiB --gpu rtx-4090 --seq 8192",
		"phi-4 --gpus 2 --gpu rtx-4090 --batch 4 --seq 2048", // too large for one GPU
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			written := filepath.Join(t.TempDir(), "page.html")
			devmap(t, 0, append([]string{"plan", "--report", written, "--time-limit", "5m"}, strings.Fields(args)...)...)
			page := new(againData)
			if err := json.Unmarshal(dataOfPage(t, written), page); err != nil {
				t.Fatal(err)
			}
			if len(page.Why.Changes) < 3 {
				t.Errorf("%d changes", len(page.Why.Changes))
			}
			for _, change := range page.Why.Changes {
				var plan struct {
					Verdict string
					Seconds *float64 `json:"step_seconds"`
					Devices []struct {
						Capacity  int64 `json:"capacity_bytes"`
						Reserved  int64 `json:"reserved_bytes"`
						Predicted struct {
							Peak     int64 `json:"peak_allocated_bytes"`
							Overhead int64 `json:"overhead_bytes"`
						}
					}
				}
				if err := json.Unmarshal(devmap(t, 0, append(strings.Fields(change.Command)[1:], "--json")...), &plan); err != nil {
					t.Fatal(err)
				}
				most, share := int64(0), 0.
				for _, device := range plan.Devices {
					used, budget := device.Predicted.Peak+device.Predicted.Overhead, device.Capacity-device.Reserved
					if is := float64(used) / float64(budget); is > share {
						most, share = device.Predicted.Peak, is
					}
				}
				if is, was := plan.Seconds, change.Seconds; (is == nil) != (was == nil) || is != nil && *is != *was {
					t.Errorf("%s: another time of a step: %s", change.Text, change.Command)
				}
				if most != change.Peak || plan.Verdict != change.Verdict || !change.Fits {
					t.Errorf("%s: a peak of %d and %q, not %d and %q", change.Text, most, plan.Verdict, change.Peak, change.Verdict)
				}
				if tight := strings.HasSuffix(change.Text, " (tight)"); tight != (plan.Verdict == "tight") || strings.Contains(change.Command, "--target-seq") {
					t.Errorf("%s (%s): %s", change.Text, plan.Verdict, change.Command)
				}
			}
		})
	}
}

// dataOfPage is the data in a page.
func dataOfPage(t *testing.T, file string) []byte {
	t.Helper()
	text := fixtures.Must(os.ReadFile(file))(t)
	_, text, found := bytes.Cut(text, []byte(`type="application/json"`))
	_, text, opened := bytes.Cut(text, []byte(">"))
	text, _, closed := bytes.Cut(text, []byte("</script>"))
	if !found || !opened || !closed {
		t.Fatal("the page has no data")
	}
	return text
}

// TestPageWithoutDevices: a plan without predictions has no page.
func TestPageWithoutDevices(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.json")
	devmap(t, 0, "plan", "gpt2", "--gpus", "2", "--gpu", "rtx-4090", "--mode", "train", "--strategy", "pipeline", "--runtime", "devmap", "-o", file)
	plan := withoutNotes(t, file)
	for _, devices := range []any{[]any{}, nil} {
		plan["devices"] = devices
		if err := os.WriteFile(file, fixtures.Must(json.Marshal(plan))(t), 0o600); err != nil {
			t.Fatal(err)
		}
		devmap(t, out.ExitError, "report", file, "--json")
	}
}

// TestPageOfMovedModel: --model is the model of the page's commands.
func TestPageOfMovedModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	made, moved, plan := filepath.Join(dir, "made"), filepath.Join(dir, "moved"), filepath.Join(dir, "plan.json")
	if err := os.Mkdir(made, 0o700); err != nil {
		t.Fatal(err)
	}
	config := `{"model_type": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "vocab_size": 1000, "n_positions": 128}`
	if err := os.WriteFile(filepath.Join(made, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	devmap(t, 0, "plan", filepath.Join(made, "config.json"), "--gpus", "2", "--gpu", "rtx-4090", "-o", plan)
	if err := os.Rename(made, moved); err != nil {
		t.Fatal(err)
	}
	page := pageOfPlan[againData](t, plan, "--model", filepath.Join(moved, "config.json"))
	if command := page.command(); len(command) < 2 || command[1] != filepath.Join(moved, "config.json") {
		t.Errorf("the command is %q", command)
	}
	for _, fact := range page.Facts {
		if fact.Name == "Read from" && fact.Value != filepath.Join(moved, "config.json") {
			t.Errorf("read from %q", fact.Value)
		}
	}
}

// TestPageChangesOfFront: changes of a front are of its map with the least memory.
func TestPageChangesOfFront(t *testing.T) {
	t.Parallel()
	written := filepath.Join(t.TempDir(), "page.html")
	devmap(t, 0, "plan", "gpt2", "--gpus", "2", "--gpu", "rtx-4090", "--mode", "train", "--objective", "front", "--report", written)
	page := new(againData)
	if err := json.Unmarshal(dataOfPage(t, written), page); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(page.command(), " "), "--objective front") || len(page.Why.Changes) == 0 {
		t.Errorf("%q, %d changes", page.command(), len(page.Why.Changes))
	}
	for _, change := range page.Why.Changes {
		if strings.Contains(change.Command, "--objective") {
			t.Errorf("%s", change.Command)
		}
	}
}

// TestPageOfOffload: the page says which modules leave the GPUs, and what is proved of the bytes that travel.
func TestPageOfOffload(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "plan.json")
	devmap(t, 0, "plan", "llama-3.1-70b", "--gpus", "2", "--gpu", "rtx-4090", "--offload", "cpu", "-o", plan, "--time-limit", "5m")
	page := pageOfPlan[struct{ Answer struct{ Proof string } }](t, plan)
	for _, part := range []string{"57 modules (model.layers.0 – model.layers.56 on the cpu).", "90.85 GiB travel to the first GPU", "at least 87.66 GiB travel"} {
		if !strings.Contains(page.Answer.Proof, part) {
			t.Errorf("%q lacks %q", page.Answer.Proof, part)
		}
	}
}

// TestPageBudget: a curve's budget is the GPU's without what the CUDA context takes.
func TestPageBudget(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "plan.json")
	devmap(t, 0, "plan", "gpt2", "--gpus", "1", "--gpu", "rtx-4090", "-o", plan)
	page := pageOfPlan[struct {
		Memory []struct {
			Budget int64 `json:"budget_bytes"`
		}
	}](t, plan)
	planned := fixtures.Must(devicemap.ReadPlan(plan))(t)
	device := &planned.Devices[0]
	if want := device.Budget - device.Predicted.OverheadBytes; len(page.Memory) != 1 || page.Memory[0].Budget != want || device.Predicted.OverheadBytes == 0 {
		t.Errorf("%+v, not %d", page.Memory, want)
	}
}

// TestPageOfTopology: no flags make a plan of a topology file again, so that its page has no command.
func TestPageOfTopology(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	topology, plan := filepath.Join(dir, "topology.json"), filepath.Join(dir, "plan.json")
	text := `{"format_version": "devmap.topology/v1", "devices": [{"name": "rtx-4090", "flops": 1e14}, {"name": "rtx-4090"}]}`
	if err := os.WriteFile(topology, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	devmap(t, 0, "plan", "gpt2", "--topology", topology, "-o", plan)
	page := pageOfPlan[againData](t, plan)
	if page.command() != nil || !strings.Contains(page.Why.Note, "flags alone do not make this plan again") || len(page.Why.Changes) > 0 {
		t.Errorf("%q, %q, %d changes", page.command(), page.Why.Note, len(page.Why.Changes))
	}
}
