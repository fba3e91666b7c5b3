package planner_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// shardedCase is a case of measure_dist.py: engine:model:batch:seq:options.
type shardedCase struct {
	name, model string
	w           costmodel.Workload
	noReshard   bool
	peak        []int64 // by rank
}

// shardedCases are the rows of FSDP2 and HSDP: each file of its own, and those
// that dist_more.json holds together.
func shardedCases(t *testing.T) []shardedCase {
	t.Helper()
	type rank struct {
		Case  string
		Peak  int64 `json:"peak_allocated"`
		World int64
		Error string
	}
	var runs [][]rank
	files, err := filepath.Glob("../fixtures/measured/dist_fsdp2_*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rows of FSDP2: %v", err)
	}
	for _, file := range files {
		var ranks []rank
		read(t, file, &ranks)
		runs = append(runs, ranks)
	}
	var more map[string]json.RawMessage // other engines' rows have other fields
	read(t, "../fixtures/measured/dist_more.json", &more)
	for name, raw := range more {
		if !strings.HasPrefix(name, "fsdp2:") && !strings.HasPrefix(name, "hsdp:") {
			continue
		}
		var ranks []rank
		if err := json.Unmarshal(raw, &ranks); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runs = append(runs, ranks)
	}
	var out []shardedCase
	for _, ranks := range runs {
		c := parseSharded(t, ranks[0].Case, ranks[0].World)
		for _, r := range ranks {
			c.peak = append(c.peak, r.Peak)
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b shardedCase) int { return cmp.Compare(a.name, b.name) })
	return out
}

// parseSharded reads a case's name.
func parseSharded(t *testing.T, name string, world int64) shardedCase {
	t.Helper()
	parts := strings.Split(name, ":")
	c := shardedCase{name: name, model: parts[1], w: workload("train", 0, 0)}
	c.w.World, c.w.Precision = world, costmodel.FP32True
	c.w.Strategy = map[string]costmodel.Strategy{"fsdp2": costmodel.FSDP, "hsdp": costmodel.HSDP}[parts[0]]
	if _, err := fmt.Sscan(parts[2]+" "+parts[3], &c.w.Batch, &c.w.Seq); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, o := range strings.Split(strings.Join(parts[4:], ","), ",") {
		switch o {
		case "mp":
			c.w.Precision = costmodel.BF16Mixed
		case "bf16":
			c.w.Precision = costmodel.BF16True
		case "ckpt":
			c.w.Recompute = costmodel.RecomputeFull
		case "noreshard":
			c.noReshard = true
		case "", "world2":
		default:
			t.Fatalf("%s: unknown option %q", name, o)
		}
	}
	return c
}

// predictSharded is the peak of every rank.
func predictSharded(t *testing.T, c *shardedCase) costmodel.Peak {
	t.Helper()
	g, err := hf.FromConfig("config.json", []byte(peerConfigs[c.model]))
	if err != nil {
		t.Fatal(err)
	}
	w, err := estimate.Resolve(g, c.w)
	if err != nil {
		t.Fatal(err)
	}
	table, err := estimate.Table(g, w)
	if err != nil {
		t.Fatal(err)
	}
	if c.noReshard { // reshard_after_forward=False on the blocks
		for i := range table.Groups {
			table.Groups[i].Kept = true
		}
	}
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	dev := gpu.Device(w.Mode)
	return table.Replica(&dev)
}

// TestShardedAccuracy holds the peak of every rank under FSDP2 and HSDP
// (torch 2.11, measured/how/measure_dist.py) to the measured rows.
func TestShardedAccuracy(t *testing.T) {
	const worst = .5
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-44s rank  predicted   measured    error  MiB off  at\n", "row (GiB)")
	for _, c := range shardedCases(t) {
		got := predictSharded(t, &c)
		total := got.Memory.Total()
		for r, measured := range c.peak {
			percent := 100 * (float64(total)/float64(measured) - 1)
			fmt.Fprintf(&table, "%-44s %4d %10.3f %10.3f %+7.3f%% %+8.2f  %s\n", c.name, r,
				costmodel.Bytes(total).GiB(), costmodel.Bytes(measured).GiB(), percent, float64(total-measured)/(1<<20), got.At)
			if math.Abs(percent) > worst {
				t.Errorf("%s, rank %d: predicted %d B, measured %d B, off by %+.2f %%; the bound is %g %%", c.name, r, total, measured, percent, worst)
			}
		}
	}
	t.Log(table.String())
}
