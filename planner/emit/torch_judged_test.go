package emit_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/emit"
)

// torchRow is what releases of torch said of a file: all the same.
type torchRow struct {
	File   string
	SHA256 string
	Torch  []string // releases
	Ranks  []int    // of each stage
	Steps  int64    // of torch's simulation
	Alive  []int64  // the most micro-batches of all stages that each rank keeps, by torch 2.15
}

// ownOrder is what --schedule auto found for llama-3.1-8b on four GPUs of 27.8 GiB.
const ownOrder = "v-order:FFFFFFfififwiwwfiIFwWfiIF,wWfiI*3,wWIWIWIW/FFFFFffifwiwfIFiiwfIFwifIwFWifIwWWiwfIWWiw,IW*3/FFFfFff,iwfIFW*4,iwfIiWwiIiIWWIWww/FfFFfFf,fiIwWF*4,fiIwWiIwiIiIwwWWW"

// judgedPlans are the plans whose files torch judged, by the name of the file.
func judgedPlans() map[string]*devicemap.Plan {
	out := map[string]*devicemap.Plan{}
	add := func(kind costmodel.ScheduleKind, name string, ranks, batches int64) {
		schedule := costmodel.Schedule{Kind: kind, Stages: ranks, Chunks: 1, MicroBatches: batches}
		if kind.Chunked() {
			schedule.Chunks = 2
		}
		if schedule.Check() != nil {
			return // too few micro-batches
		}
		var devices []devicemap.Device
		for stage := range ranks * schedule.Chunks {
			rank, _ := schedule.Place(stage)
			devices = append(devices, devicemap.Device(rank))
		}
		out[fmt.Sprintf("%s_%dx%dx%d.csv", name, ranks, len(devices), batches)] = piped(kind, batches, devices...)
	}
	for ranks := int64(1); ranks <= 8; ranks++ {
		for _, batches := range []int64{1, ranks, 2*ranks + 1, 8 * ranks} {
			for _, kind := range costmodel.ScheduleKinds() {
				add(kind, string(kind), ranks, batches)
			}
		}
	}
	add(ownOrder, "auto", 4, 8)
	return out
}

// TestTorchJudged: torch 2.11 to 2.15 take every file that devmap writes, put each stage on the
// planned rank and find no deadlock. torch 2.15 counts as many micro-batches alive as devmap. A
// change of a file needs torch's word again: with DEVMAP_SCHEDULES=FOLDER the test writes the
// files, and dump.py judge FOLDER testdata/torch-judged.jsonl reads them.
func TestTorchJudged(t *testing.T) {
	rows := map[string]torchRow{}
	data, err := os.ReadFile("testdata/torch-judged.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var row torchRow
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows[row.File] = row
	}
	folder := os.Getenv("DEVMAP_SCHEDULES")
	plans := judgedPlans()
	for name, plan := range plans {
		var text bytes.Buffer
		if err := target(t, "torch-schedule").Write(&text, &emit.Input{Plan: plan}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if folder != "" {
			if err := os.WriteFile(filepath.Join(folder, name), text.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		sum := sha256.Sum256(text.Bytes())
		want := torchRow{
			File: name, SHA256: hex.EncodeToString(sum[:]), Torch: []string{"2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"},
			Ranks: ranksIn(plan), Steps: rows[name].Steps, Alive: kept(plan),
		}
		if diff := cmp.Diff(want, rows[name]); diff != "" {
			t.Errorf("%s (-devmap's +torch's):\n%s", name, diff)
		}
	}
	if folder == "" && len(rows) != len(plans) {
		t.Errorf("torch judged %d files, devmap writes %d", len(rows), len(plans))
	}
}

func ranksIn(plan *devicemap.Plan) (ranks []int) {
	for i := range plan.Stages {
		ranks = append(ranks, int(plan.Stages[i].Device))
	}
	return ranks
}

// kept counts the micro-batches of all stages that each rank keeps at once, from the forward to the
// gradients of the weights.
func kept(plan *devicemap.Plan) (most []int64) {
	ranks := ranksIn(plan)
	count := int64(slices.Max(ranks)) + 1
	schedule := costmodel.NewSchedule(&plan.Workload, count, int64(len(ranks))/count)
	for rank := range count {
		var alive, high int64
		for _, action := range order.Of(schedule, rank) {
			switch action.Kind {
			case order.Forward:
				alive++
			case order.Backward, order.Weight:
				alive--
			case order.Input:
			}
			high = max(high, alive)
		}
		most = append(most, high)
	}
	return most
}
