package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// momentsData is what TestPageMoments reads of a page.
type momentsData struct {
	GPUs []struct {
		Memory *int
	}
	Memory []struct {
		Devices []int
		Axis    string
		X       []int64
		Label   []int
		Total   []int64
	}
	Time struct {
		Lanes []struct {
			Device        int
			Stream        string
			Start, Length []int64
			Label         []int
		}
	}
	Names []string
}

// TestPageMoments: "forward of X" and "backward of X" are when a lane runs the unit of X, the loss is when a
// lane runs the head, and a pause begins when no lane runs.
func TestPageMoments(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{
		"both ends":     "qwen2.5-3b --gpus 4 --gpu h200-141gb --mode train --batch 4",
		"one":           "llama-3.2-1b --gpus 1 --gpu h200-141gb --mode train --batch 4 --micro-batches 2",
		"recompute":     "llama-3.2-1b --gpus 2 --gpu h200-141gb --mode train --recompute full",
		"ddp":           "qwen2.5-0.5b --gpus 4 --gpu rtx-4090 --mode train --batch 2 --strategy ddp",
		"zero3":         "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --batch 4 --strategy zero3",
		"fsdp":          "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --strategy fsdp",
		"fsdp1":         "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --strategy fsdp --preset torchtune",
		"last token":    "llama-3.1-8b --gpus 2 --gpu rtx-4090 --new-tokens 64",
		"micro-batches": "llama-3.2-1b --gpus 4 --gpu h200-141gb --mode train --strategy fsdp --batch 4 --micro-batches 4",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := filepath.Join(t.TempDir(), "plan.json")
			devmap(t, 0, append([]string{"plan", "-o", plan, "--time-limit", "5m"}, strings.Fields(args)...)...)
			page := pageOfPlan[momentsData](t, plan)
			for number := range page.Memory {
				page.check(t, number)
			}
		})
	}
}

// check compares the moments of a curve with the lanes of its first GPU.
func (page *momentsData) check(t *testing.T, number int) {
	t.Helper()
	curve, placed, pauses := &page.Memory[number], 0, 0
	for i, label := range curve.Label {
		at := page.Names[label]
		runs := page.runs(curve.Devices[0], curve.X[i])
		pass, layer, _ := strings.Cut(at, " of ")
		switch at {
		case "loss forward", "loss backward":
			pass, layer = strings.TrimPrefix(at, "loss "), "lm_head"
		}
		switch pass {
		case "after forward", "after backward", "after loss forward", "after loss backward":
			if i+1 < len(curve.X) && len(runs) > 0 {
				t.Errorf("GPU %d: %s is at %d, when %q run", curve.Devices[0], at, curve.X[i], runs)
			}
			pauses++
		case "forward", "backward":
			within := func(label string) bool {
				what, unit, _ := strings.Cut(label, " of ")
				return what == pass && (layer == unit || strings.HasPrefix(layer, unit+"."))
			}
			if !slices.ContainsFunc(runs, within) {
				t.Errorf("GPU %d: %s is at %d, when %q run", curve.Devices[0], at, curve.X[i], runs)
			}
			placed++
		}
	}
	if placed < 4 || curve.Axis != "time" {
		t.Errorf("curve %d has %d moments of layers on an axis of %s", number, placed, curve.Axis)
	}
	if waits := page.waits(curve.Devices[0]); waits > 0 && pauses == 0 {
		t.Errorf("curve %d has no pause, and the lane of GPU %d has %d", number, curve.Devices[0], waits)
	}
}

// waits counts the gaps in a GPU's compute lane.
func (page *momentsData) waits(device int) (count int) {
	for _, lane := range page.Time.Lanes {
		for i := 1; i < len(lane.Start) && lane.Stream == "compute" && lane.Device == device; i++ {
			if lane.Start[i] > lane.Start[i-1]+lane.Length[i-1] {
				count++
			}
		}
	}
	return count
}

// runs are what a GPU computes at a time. Micro-batches can overlap by the time that the first one waited.
func (page *momentsData) runs(device int, at int64) (labels []string) {
	for _, lane := range page.Time.Lanes {
		if lane.Stream != "compute" || lane.Device != device {
			continue
		}
		for i, start := range lane.Start {
			if start <= at && at < start+lane.Length[i] {
				labels = append(labels, page.Names[lane.Label[i]])
			}
		}
	}
	return labels
}
