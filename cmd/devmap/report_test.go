package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// pageData is what the tests read of devmap.page/v1.
type pageData struct {
	Answer struct {
		Verdict, Sentence string
	}
	GPUs []struct {
		Device  int
		Bytes   []int64
		Peak    int64 `json:"peak_bytes"`
		Memory  *int
		Modules []struct{ Bytes int64 }
	}
	Memory []struct {
		Axis  string
		X     []int64
		Label []int
		Total []int64
		Bands []struct {
			Category int
			Bytes    []int64
			Constant int64
		}
		Peak int
		Live []struct {
			Name, Category int
			Bytes          int64
		}
	}
	MemoryNote string `json:"memory_note"`
	Categories []struct{ Key string }
	Arenas     *struct {
		Categories []int // of the kinds
		Maps       []struct {
			Device int
			Size   int64 `json:"size_bytes"`
			Rects  struct {
				Address, Bytes, From, To []int64
				Kind                     []int
			}
		}
	}
	Time struct {
		Note        string
		Makespan    int64
		StepSeconds *float64 `json:"step_seconds"`
		Lanes       []struct {
			Stream        string
			Start, Length []int64
		}
	}
	Why struct {
		Changes []struct {
			Command, Effect string
			Fits            bool
		}
		Now *struct{}
	}
	Names []string
}

// pagePlans are plans of every strategy, every engine, and diffusion. rows are the least rows of live buffers
// at the peak of GPU 0; lanes says that the step has lanes.
var pagePlans = map[string]struct {
	args  string
	rows  int
	lanes bool
}{
	"device map":         {"qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4", 10, true},
	"inference":          {"llama-3.1-8b --gpus 2 --gpu rtx-4090 --new-tokens 64", 20, true},
	"load":               {"llama-3.1-8b --gpus 2 --gpu rtx-4090 --mode load", 17, false},
	"offload":            {"llama-3.1-70b --gpus 1 --gpu h100-80gb --offload cpu", 100, true},
	"objective time":     {"llama-3.1-8b --gpus 4 --gpu h200-141gb --objective time", 30, true},
	"ddp":                {"gpt2 --gpus 4 --gpu h200-141gb --mode train --strategy ddp", 40, true},
	"zero1":              {"qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --strategy zero1", 40, true},
	"zero2":              {"qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --strategy zero2", 40, true},
	"zero3":              {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --strategy zero3 --batch 4 --micro-batches 4", 40, true},
	"fsdp":               {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --strategy fsdp --batch 4 --micro-batches 4 --recompute full", 40, true},
	"fsdp1":              {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --strategy fsdp --preset torchtune", 40, true},
	"hsdp":               {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --strategy hsdp --shard-degree 4", 40, true},
	"lora":               {"llama-3.1-8b --gpus 4 --gpu rtx-4090 --mode train --strategy fsdp --lora-rank 16", 30, true},
	"gpipe":              {"llama-3.1-8b --gpus 4 --gpu h200-141gb --mode train --batch 8 --strategy pipeline --micro-batches 8 --schedule gpipe", 20, true},
	"interleaved":        {"llama-3.1-8b --gpus 4 --gpu h200-141gb --mode train --batch 8 --strategy pipeline --micro-batches 8 --schedule interleaved", 20, true},
	"pipeline inference": {"llama-3.1-8b --gpus 4 --gpu h200-141gb --batch 8 --strategy pipeline --micro-batches 4", 10, true},
	"tensor parallel":    {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --batch 8 --strategy pipeline --micro-batches 4 --dp 2 --tp 2", 20, true},
	"degrees auto":       {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --batch 8 --strategy pipeline --micro-batches 4 --dp auto --tp auto --recompute auto", 20, true},
	"torchtitan":         {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --runtime torchtitan --strategy pipeline --pp 4 --micro-batches 4 --batch 4", 20, true},
	"context parallel":   {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --runtime torchtitan --cp 2 --tp 2", 20, true},
	"megatron":           {"llama-3.1-8b --gpus 8 --gpu h200-141gb --mode train --runtime megatron --tp 2 --pp 2 --micro-batches 4 --batch 4", 20, true},
	"expert parallel":    {"mixtral-8x7b --gpus 16 --gpu h200-141gb --mode train --runtime megatron --pp 4 --ep 2 --micro-batches 8 --batch 8", 20, true},
	"jax":                {"pi0 --gpus 8 --gpu h200-141gb --mode train", 5, true},
	"devmap":             {"gpt2 --gpus 2 --gpu rtx-4090 --mode train --strategy pipeline --runtime devmap --batch 4 --micro-batches 4", 30, true},
	"devmap map":         {"llama-3.1-8b --gpus 2 --gpu h200-141gb --runtime devmap --mode train --batch 2", 40, true},
	"devmap inference":   {"llama-3.1-8b --gpus 2 --gpu h200-141gb --runtime devmap --batch 4 --micro-batches 4 --new-tokens 8", 30, true},
	"vllm":               {"llama-3.1-8b --gpus 2 --gpu h200-141gb --runtime vllm", 3, false},
	"sglang":             {"llama-3.1-8b --gpus 2 --gpu h200-141gb --runtime sglang", 3, false},
	"diffusers":          {"sd-3.5-large --gpus 1 --gpu rtx-4090 --offload model", 3, false},
	"xdit":               {"flux.1-dev --gpus 2 --gpu h200-141gb", 3, false},
	"diffusion training": {"flux.1-dev --gpus 1 --gpu h200-141gb --mode train --preset diffusers-dreambooth-lora", 3, false},
}

// TestPages: of every kind of plan, bands and live buffers add up to the printed peaks to the byte, no
// part is negative, and the lanes end with the step.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, of := range pagePlans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan, written := filepath.Join(dir, "plan.json"), filepath.Join(dir, "page.html")
			made := devmap(t, 0, append([]string{"plan", "--json", "--time-limit", "5m"}, strings.Fields(of.args)...)...)
			if err := os.WriteFile(plan, made, 0o600); err != nil {
				t.Fatal(err)
			}
			devmap(t, 0, "report", plan, "-o", written)
			page := pageOfPlan[pageData](t, plan)
			planned := fixtures.Must(devicemap.ReadPlan(plan))(t)
			page.check(t, planned)
			if rows := len(page.Memory[*page.GPUs[0].Memory].Live); rows < of.rows {
				t.Errorf("%d rows of live buffers on GPU 0, not %d", rows, of.rows)
			}
			if (len(page.Time.Lanes) > 0) != of.lanes || of.lanes == (page.Time.Note != "") {
				t.Errorf("%d lanes, and %q", len(page.Time.Lanes), page.Time.Note)
			}
		})
	}
}

// pageOfPlan is what a test reads of a plan's page.
func pageOfPlan[data any](t *testing.T, plan string, flags ...string) *data {
	t.Helper()
	page := new(data)
	if err := json.Unmarshal(devmap(t, 0, append([]string{"report", plan, "--json"}, flags...)...), page); err != nil {
		t.Fatal(err)
	}
	return page
}

// check compares a page with its plan.
func (page *pageData) check(t *testing.T, plan *devicemap.Plan) {
	t.Helper()
	if len(page.GPUs) != len(plan.Devices) || page.Answer.Sentence == "" {
		t.Fatalf("%d GPUs, the plan has %d: %+v", len(page.GPUs), len(plan.Devices), page.Answer)
	}
	for i := range page.GPUs {
		gpu, peak := &page.GPUs[i], plan.Devices[i].Predicted.PeakAllocatedBytes
		if gpu.Peak != peak || added(gpu.Bytes) != peak {
			t.Errorf("GPU %d: a peak of %d, parts %v, and the plan has %d", i, gpu.Peak, gpu.Bytes, peak)
		}
		if gpu.Memory == nil {
			if peak != 0 {
				t.Errorf("GPU %d has no curve (%s)", i, page.MemoryNote)
			}
			continue
		}
		curve := &page.Memory[*gpu.Memory]
		live := int64(0)
		for _, row := range curve.Live {
			live += row.Bytes
			if row.Bytes <= 0 || page.Names[row.Name] == "" {
				t.Errorf("GPU %d: %q has %d bytes", i, page.Names[row.Name], row.Bytes)
			}
		}
		if live != peak || curve.Total[curve.Peak] != peak || slices.Max(curve.Total) != peak {
			t.Errorf("GPU %d: %d live, %d at the peak, %d at most; the plan has %d", i, live, curve.Total[curve.Peak], slices.Max(curve.Total), peak)
		}
		for at := range curve.X {
			total := int64(0)
			for _, band := range curve.Bands {
				bytes := band.Constant
				if band.Bytes != nil {
					bytes = band.Bytes[at]
				}
				if total += bytes; bytes < 0 {
					t.Errorf("GPU %d: band %d has %d bytes at %s", i, band.Category, bytes, page.Names[curve.Label[at]])
				}
			}
			if total != curve.Total[at] || at > 0 && curve.X[at] <= curve.X[at-1] {
				t.Fatalf("GPU %d, point %d: the bands add up to %d of %d, at %d after %d", i, at, total, curve.Total[at], curve.X[at], curve.X[max(0, at-1)])
			}
		}
	}
	if seconds := page.Time.StepSeconds; seconds != nil && len(page.Time.Lanes) > 0 && math.Abs(float64(page.Time.Makespan)/1e9-*seconds) > 1e-6**seconds {
		t.Errorf("the lanes end at %d ns, and a step takes %v s", page.Time.Makespan, *seconds)
	}
	page.checkLanes(t)
}

// checkLanes: spans are in order and within the step, rectangles within their arenas. Each band of a curve has
// rectangles of its category.
func (page *pageData) checkLanes(t *testing.T) {
	t.Helper()
	for i, lane := range page.Time.Lanes {
		for at := range lane.Start {
			if at > 0 && lane.Stream == "compute" && lane.Start[at] <= lane.Start[at-1] {
				t.Fatalf("lane %d: spans %d and %d both begin at %d", i, at-1, at, lane.Start[at])
			}
			if lane.Length[at] <= 0 || lane.Start[at] < 0 || lane.Start[at]+lane.Length[at] > page.Time.Makespan {
				t.Fatalf("lane %d: span %d is %d long from %d on, and the step ends at %d", i, at, lane.Length[at], lane.Start[at], page.Time.Makespan)
			}
		}
	}
	if page.Arenas == nil {
		return
	}
	for _, arena := range page.Arenas.Maps {
		for _, band := range page.Memory[*page.GPUs[arena.Device].Memory].Bands {
			shown := func(kind int) bool { return page.Arenas.Categories[kind] == band.Category }
			if key := page.Categories[band.Category].Key; key != "idle" && !slices.ContainsFunc(arena.Rects.Kind, shown) {
				t.Errorf("GPU %d: no rectangle has the category %s of a band", arena.Device, key)
			}
		}
		for i := range arena.Rects.Address {
			if rects := &arena.Rects; rects.Address[i] < 0 || rects.Bytes[i] <= 0 || rects.Address[i]+rects.Bytes[i] > arena.Size || rects.To[i] < rects.From[i] || rects.To[i] > page.Time.Makespan {
				t.Fatalf("rectangle %d is at %d + %d of %d, from %d to %d", i, rects.Address[i], rects.Bytes[i], arena.Size, rects.From[i], rects.To[i])
			}
		}
	}
}

func added(parts []int64) (all int64) {
	for _, part := range parts {
		all += part
	}
	return all
}

// TestPageSize: a page of a large model has at most 2 MB, whatever its engine.
func TestPageSize(t *testing.T) {
	t.Parallel()
	const most = 2_000_000
	for _, how := range []string{"pipeline --runtime devmap", "pipeline --recompute full --seq 1024 --optimizer adamw-8bit", "zero3 --recompute full"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plan, written := filepath.Join(dir, "plan.json"), filepath.Join(dir, "page.html")
			args := strings.Fields("plan llama-3.1-405b --gpus 64 --gpu h200-141gb --mode train --batch 64 --micro-batches 64 --strategy " + how)
			devmap(t, 0, append(args, "-o", plan, "--time-limit", "5m")...)
			devmap(t, 0, "report", plan, "-o", written)
			info := fixtures.Must(os.Stat(written))(t)
			if info.Size() > most {
				t.Errorf("%d bytes, more than %d", info.Size(), most)
			}
			page := pageOfPlan[pageData](t, plan)
			if len(page.GPUs) != 64 || len(page.Time.Lanes) == 0 || len(page.Memory) == 0 {
				t.Errorf("%d GPUs, %d lanes, %d curves", len(page.GPUs), len(page.Time.Lanes), len(page.Memory))
			}
		})
	}
}

// TestPageChanges: the command of each change makes a plan.
func TestPageChanges(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "plan.json")
	devmap(t, 0, "plan", "qwen2.5-3b", "--gpus", "4", "--gpu", "rtx-4090", "--mode", "train", "--batch", "4", "-o", plan)
	page := pageOfPlan[pageData](t, plan)
	if len(page.Why.Changes) < 3 || page.Why.Now == nil {
		t.Fatalf("%d changes, and Accelerate's map %v", len(page.Why.Changes), page.Why.Now)
	}
	for _, change := range page.Why.Changes {
		args, found := strings.CutPrefix(change.Command, "devmap ")
		if !found || change.Effect == "" {
			t.Errorf("%+v", change)
			continue
		}
		status := 0
		if !change.Fits {
			status = 3
		}
		devmap(t, status, append(strings.Fields(args), "--json")...)
	}
}

// TestPageOfGGUF: llama.cpp serves, so its page has GPUs and no step.
func TestPageOfGGUF(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tinyGGUF(t, dir)
	plan := filepath.Join(dir, "plan.json")
	devmap(t, 0, "plan", filepath.Join(dir, "tiny.gguf"), "--gpus", "2", "--gpu", "rtx-4090", "-o", plan)
	page := pageOfPlan[pageData](t, plan)
	planned := fixtures.Must(devicemap.ReadPlan(plan))(t)
	page.check(t, planned)
	if page.Time.Note == "" || len(page.Time.Lanes) > 0 || page.MemoryNote == "" {
		t.Errorf("%+v, %q", page.Time, page.MemoryNote)
	}
}
