package accuracy_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/catalogue"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// oracleCell is one step of a small model that devmap.measure followed without a GPU
// (fixtures/oracle/peaks.py; Transformers 5.17, an H200). Each cell has its peak in
// another moment: a layer's forward, the logits, what layers keep, the loss, a
// checkpointed layer, adapters.
type oracleCell struct {
	Type, Cell, Mode string
	Config           json.RawMessage
	Batch, Seq, LoRA int64
	Peak             int64
}

func oracleCells(t *testing.T) []oracleCell {
	t.Helper()
	file, err := os.Open("../../../fixtures/oracle/peaks.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var cells []oracleCell
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var cell oracleCell
		if err := json.Unmarshal(lines.Bytes(), &cell); err != nil {
			t.Fatal(err)
		}
		cells = append(cells, cell)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return cells
}

func (cell *oracleCell) workload() costmodel.Workload {
	w := costmodel.Workload{Mode: costmodel.Infer, Batch: cell.Batch, Seq: cell.Seq, Precision: costmodel.BF16True, Preset: "accelerate-loop"}
	if cell.Mode != "prefill" {
		w.Mode, w.Optimizer = costmodel.Train, costmodel.AdamW
	}
	if cell.Mode == "ckpt" {
		w.Recompute = costmodel.RecomputeFull
	}
	if cell.LoRA > 0 {
		w.LoRARank, w.LoRATargets, w.LoRAPrecision = cell.LoRA, []string{"all-linear"}, "fp32"
	}
	return w
}

// TestOracleCells predicts each cell. Every difference is inside the band that a plan of
// the type states, and the share within 1 % does not fall.
func TestOracleCells(t *testing.T) {
	gpu, err := catalogue.Find("h200-141gb")
	if err != nil {
		t.Fatal(err)
	}
	cells := oracleCells(t)
	near := 0
	var table strings.Builder
	for i := range cells {
		cell := &cells[i]
		graph, costs := costsOf(t, cell.Config, cell.workload())
		topology := &costmodel.Topology{Devices: []costmodel.Device{gpu.Device(costs.Workload.Mode)}}
		predicted := devicemap.Predict(costs, topology, make(devicemap.Map, len(graph.Units)))
		off := float64(predicted[0].Predicted.PeakAllocatedBytes)/float64(cell.Peak) - 1
		if max(off, -off) <= 0.01 {
			near++
		} else {
			fmt.Fprintf(&table, "\n%-20s %-9s %+7.2f%%", cell.Type, cell.Cell, 100*off)
		}
		if stated := max(costs.Band, 0.01); max(off, -off) > stated {
			t.Errorf("%s %s: off by %+.2f %%; a plan states %.1f %%", cell.Type, cell.Cell, 100*off, 100*stated)
		}
	}
	if least := oracleNear * len(cells) / 100; near < least {
		t.Errorf("%d of %d cells are within 1 %%; at least %d were", near, len(cells), least)
	}
	types := slices.CompactFunc(slices.Clone(cells), func(one, other oracleCell) bool { return one.Type == other.Type })
	t.Logf("%d of %d cells of %d types within 1 %%; the others:%s", near, len(cells), len(types), table.String())
}

// oracleNear is the least per cent of cells within 1 %.
const oracleNear = 77
