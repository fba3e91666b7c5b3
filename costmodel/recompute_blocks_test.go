package costmodel

import (
	"slices"
	"strings"
	"testing"
)

func TestRecomputedBlocks(t *testing.T) {
	for text, want := range map[string][]bool{
		"":        {false, false, false, false},
		"none":    {false, false, false, false},
		"full":    {true, true, true, true},
		"0":       {true, false, false, false},
		"1-2":     {false, true, true, false},
		"0,2-3":   {true, false, true, true},
		"0-1,3-3": {true, true, false, true},
	} {
		workload := Workload{Recompute: text}
		got, err := workload.Recomputed(4)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, error %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"4", "1,3-4", "0-9"} {
		workload := Workload{Recompute: text}
		if got, err := workload.Recomputed(4); err == nil {
			t.Errorf("%q of 4 blocks: %v", text, got)
		}
	}
	for _, text := range []string{"3-1", "1,1", "2,1", "01", "1-", "-1", "1 ,2", "1,", "9999999999", "0x1"} {
		workload := Workload{Mode: Train, Batch: 1, MicroBatches: 1, Precision: BF16True, Optimizer: AdamW, Recompute: text}
		if field, _ := workload.Fault(); workload.ListsRecomputed() || field == "" {
			t.Errorf("%q is a list, or a known value", text)
		}
	}
	for text, want := range map[string]string{
		"5-0": "no list of blocks such as 0-5,9: the range 5-0 ends before it begins", "9,0-5": "0-5 follows block 9", "0-5,3-7": "3-7 follows block 5",
		"0-5,,9": `"" is no block and no range`, "0-5, 9": `" 9" is no block and no range of blocks (no spaces`, "-1": "begins with no number", "1.5": `"1.5" is no block`,
		"ful": "unknown (known: none, full, selective, auto, a list of blocks such as 0-5,9)",
	} {
		workload := Workload{Mode: Train, Batch: 1, MicroBatches: 1, Precision: BF16True, Optimizer: AdamW, Recompute: text}
		if _, fault := workload.Fault(); !strings.Contains(fault, want) {
			t.Errorf("%q: %s, want %q", text, fault, want)
		}
	}
}

// The error of a wrong order names its row and the fault.
func TestMalformedOrders(t *testing.T) {
	for text, want := range map[ScheduleKind]string{"order:X/Y": `row 0 of the order has "X"`, "order:FB*99999999999/FB": `row 0 of the order has "FB*99999999999"`} {
		workload := Workload{Mode: Train, Batch: 1, MicroBatches: 1, Precision: BF16True, Optimizer: AdamW, Recompute: RecomputeNone, Runtime: "torch", Strategy: Pipeline, Schedule: text}
		if field, fault := workload.Fault(); field != "schedule" || !strings.Contains(fault, want) {
			t.Errorf("%s: %s: %s, want %q", text, field, fault, want)
		}
	}
}

func FuzzRecomputedBlocks(f *testing.F) {
	f.Add("0-5,9", uint16(5))
	f.Fuzz(func(t *testing.T, text string, bits uint16) {
		blocks := make([]bool, 16)
		for block := range blocks {
			blocks[block] = bits>>block&1 != 0
		}
		workload := Workload{Recompute: RecomputeOf(blocks)}
		if got, err := workload.Recomputed(16); err != nil || !slices.Equal(got, blocks) {
			t.Errorf("%v is %q, and that %v (%v)", blocks, workload.Recompute, got, err)
		}
		workload.Recompute = text
		if _, err := workload.Recomputed(16); err != nil && !workload.ListsRecomputed() {
			t.Errorf("%q: %v", text, err)
		}
	})
}
