package torchcsv

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/order"
)

// round puts stages on ranks in turn, as torch does.
func round(stages, ranks int) []int {
	out := make([]int, stages)
	for stage := range out {
		out[stage] = stage % ranks
	}
	return out
}

// ranksOf returns the rank of each stage of a schedule.
func ranksOf(schedule costmodel.Schedule) (ranks []int) {
	for stage := range schedule.Stages * schedule.Chunks {
		rank, _ := schedule.Place(stage)
		ranks = append(ranks, int(rank))
	}
	return ranks
}

// written returns actions as a file: a row per rank, a cell per action.
func written(ranks []int, actions [][]order.Action) string {
	stages := make([][]int, len(actions)) // the stages of each rank
	for stage, rank := range ranks {
		stages[rank] = append(stages[rank], stage)
	}
	var text strings.Builder
	for rank, row := range actions {
		cells := make([]string, len(row))
		for i, action := range row {
			cells[i] = fmt.Sprintf("%d%v%d", stages[rank][action.Chunk], action.Kind, action.MicroBatch)
		}
		fmt.Fprintln(&text, strings.Join(cells, ","))
	}
	return text.String()
}

// TestCSV: files written by torch 2.11's own classes (testdata/torch/dump.py) read as devmap's
// orders. Written again, they read the same.
func TestCSV(t *testing.T) {
	for _, c := range []struct {
		schedule costmodel.Schedule
		file     string
	}{
		{costmodel.Schedule{Kind: costmodel.GPipe, Stages: 3, Chunks: 1, MicroBatches: 4}, "gpipe_3x4.csv"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 2, Chunks: 2, MicroBatches: 4}, "interleaved_2x2x4.csv"},
		{costmodel.Schedule{Kind: costmodel.Interleaved, Stages: 4, Chunks: 3, MicroBatches: 8}, "interleaved_4x3x8.csv"},
		{costmodel.Schedule{Kind: costmodel.ZBV, Stages: 1, Chunks: 2, MicroBatches: 2}, "zbv_1x2.csv"},
		{costmodel.Schedule{Kind: costmodel.ZBV, Stages: 2, Chunks: 2, MicroBatches: 1}, "zbv_2x1.csv"},
		{costmodel.Schedule{Kind: costmodel.ZBV, Stages: 3, Chunks: 2, MicroBatches: 4}, "zbv_3x4.csv"},
		{costmodel.Schedule{Kind: costmodel.ZBV, Stages: 4, Chunks: 2, MicroBatches: 12}, "zbv_4x12.csv"},
	} {
		data, err := os.ReadFile("testdata/torch/" + c.file)
		if err != nil {
			t.Fatal(err)
		}
		ranks := ranksOf(c.schedule)
		want := order.Engine(c.schedule, ranks, true)
		got, err := Read(c.file, data, ranks, c.schedule.MicroBatches, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-devmap's +torch's):\n%s", c.file, diff)
		}
		again, err := Read("again", []byte(written(ranks, want)), ranks, c.schedule.MicroBatches, true)
		if err != nil || !cmp.Equal(want, again) {
			t.Errorf("%s: written and read again: %v, %v", c.file, again, err)
		}
	}
}

// TestTorchs1F1B: Schedule1F1B._get_pipeline_order of torch 2.11 counts the last rank's forwards
// from 1, which torch's own loader refuses. The other rows equal devmap's.
func TestTorchs1F1B(t *testing.T) {
	data, err := os.ReadFile("testdata/torch/1f1b_3x5.csv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Read("f", data, round(3, 3), 5, true)
	if want := `f: row 3, cell 2: "2B0": a backward before its forward
f: row 3, cell 9: "2F5": there are micro-batches 0 to 4
f: row 3: "2F0" is missing`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	ours := splitRows(written(round(3, 3), order.Engine(costmodel.Schedule{Kind: costmodel.OneFOneB, Stages: 3, Chunks: 1, MicroBatches: 5}, round(3, 3), true)))
	torchs := splitRows(string(data))
	if diff := cmp.Diff(ours[:2], torchs[:2]); diff != "" {
		t.Errorf("(-devmap's +torch's):\n%s", diff)
	}
	if last := "2F0,2B0,2F1,2B1,2F2,2B2,2F3,2B3,2F4,2B4"; strings.Join(ours[2], ",") != last {
		t.Errorf("last row %v, want %s", ours[2], last)
	}
}

// TestDialects: BW is a whole backward. In a file with BW, B is the input's half.
func TestDialects(t *testing.T) {
	want := [][]order.Action{{{}, {Kind: order.Backward}}}
	for _, text := range []string{"0F0,0B0", "0F0,,0BW0\r\n", "\"0F0\" , 0B0\n\n"} {
		got, err := Read("f", []byte(text), []int{0}, 1, true)
		if err != nil || !cmp.Equal(want, got) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	halves, err := Read("f", []byte("0F0,0F1,0B0,0W0,0BW1"), []int{0}, 2, true)
	if want := [][]order.Action{{{}, {MicroBatch: 1}, {Kind: order.Input}, {Kind: order.Weight}, {Kind: order.Backward, MicroBatch: 1}}}; err != nil || !cmp.Equal(want, halves) {
		t.Errorf("halves: %v, %v", halves, err)
	}
	if got, err := Read("f", []byte("0F0"), []int{0}, 1, false); err != nil || len(got[0]) != 1 {
		t.Errorf("inference: %v, %v", got, err)
	}
}

// TestCSVRefused: errors name the row and cell of invalid cells, and of actions that devmap does
// not run.
func TestCSVRefused(t *testing.T) {
	for text, want := range map[string]string{
		"0F0,0FB0":                 `f: row 1, cell 2: "0FB0": want STAGE, F, B, I or W, MICROBATCH`,
		"0F0\n1UNSHARD":            `f: row 2, cell 1: "1UNSHARD": UNSHARD (gathers FSDP's parameters) is not supported`,
		"0RESHARD":                 `f: row 1, cell 1: "0RESHARD": RESHARD (`,
		"0REDUCE_GRAD":             `f: row 1, cell 1: "0REDUCE_GRAD": REDUCE_GRAD (`,
		"0F0,0SEND_F0":             `f: row 1, cell 2: "0SEND_F0": SEND_F (communication) is not supported`,
		"1RECV_B0":                 `f: row 1, cell 1: "1RECV_B0": RECV_B (`,
		"0F0,(0F1;1B0)OVERLAP_F_B": `f: row 1, cell 2: "(0F1;1B0)OVERLAP_F_B": OVERLAP_F_B (a forward and a backward at once) is not supported`,
		"F0":                       `f: row 1, cell 1: "F0": want STAGE, F, B, I or W, MICROBATCH, as in 2F0`,
		"0F":                       `f: row 1, cell 1: "0F": want STAGE`,
		"0F0x":                     `f: row 1, cell 1: "0F0x": want STAGE`,
		"-1F0":                     `f: row 1, cell 1: "-1F0": want STAGE`,
		"0 F0":                     `f: row 1, cell 1: "0 F0": want STAGE`,
		"0":                        `f: row 1, cell 1: "0": want STAGE`,
		"0F99999999999":            `f: row 1, cell 1: "0F99999999999": want STAGE`,
		"(0F0;0B0":                 `f: row 1, cell 1: "(0F0;0B0": want STAGE`,
	} {
		_, err := Read("f", []byte(text), []int{0, 1}, 1, true)
		var faults *FaultsError
		if err == nil || errors.As(err, &faults) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: error %v, want %s…", text, err, want)
		}
	}
}

// TestCSVOddV: a V cannot have an odd number of stages, in a file that lacks one or has one too many.
func TestCSVOddV(t *testing.T) {
	const whole = "0F0,3F0,3B0,0B0\n1F0,2F0,2B0,1B0"
	for text, want := range map[string]string{
		whole:                              "",
		"0F0,0B0\n1F0,2F0,2B0,1B0":         "stages: 3, an odd number: a V has two on each rank",
		whole + ",4F0":                     "stages: 5, an odd number: a V has two on each rank",
		"0F0,0B0\n1F0,1B0":                 "",
		"0F0,3F0,3B0,0B0\n1F0,2F0,2B0,2F0": "",
	} {
		_, err := Read("f", []byte(text), []int{0, 1, 1, 0}, 1, true)
		if odd := err != nil && strings.Contains(err.Error(), "odd"); odd != (want != "") || odd && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestCSVFaults: one error lists all broken rules of a schedule.
func TestCSVFaults(t *testing.T) {
	for _, c := range []struct {
		text  string
		train bool
		want  []string
	}{
		{"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1", true, nil},
		{"0F0,0F0,0B0,0B1\n1F0,1B0,1F1,1B1", true, []string{
			`row 1, cell 2: "0F0": twice: it is in cell 1 too`, `row 1, cell 4: "0B1": a backward before its forward`, `row 1: "0F1" is missing`,
		}},
		{"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,0F1", true, []string{
			`row 2, cell 4: "0F1": stage 0 runs on two ranks: it is in row 1, cell 2 too`, `row 2: "1B1" is missing`,
		}},
		{"0F0,0F1,2F0,0F2\n", true, []string{
			`row 1, cell 3: "2F0": there are stages 0 to 1`, `row 1, cell 4: "0F2": there are micro-batches 0 to 1`,
			"rows: 1, and the plan has 2 ranks, a row each",
			`row 1: "0B0" is missing, and 1 more like it`, `row 2: "1F0" is missing, and 1 more like it`, `row 2: "1B0" is missing, and 1 more like it`,
		}},
		{"1F0,1B0,1F1,1B1\n0F0,0F1,0B0,0B1", true, []string{
			`row 1, cell 1: "1F0": the plan runs stage 1 on rank 1, row 2`, `row 2, cell 1: "0F0": the plan runs stage 0 on rank 0, row 1`,
		}},
		{"0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1B1", true, []string{`row 2: "1W0" is missing`}},
		{"0F0,0F1,0I0,0W0,0I1,0W1\n1F0,1I0,1F1,1B1,1W0", true, nil},
		{"0I0,0F0,0F1,0B1,0W0\n1F0,1B0,1F1,1W1,1I1", true, []string{
			`row 1, cell 1: "0I0": an I before its F: the input's half of a backward needs its forward first`,
			`row 2, cell 4: "1W1": a W before its I: the gradients of weights need the gradient of the input first`,
		}},
		{"0F0,0F1,0I0,0B0,0B1,0I1\n1F0,1B0,1F1,1B1", true, []string{
			`row 1, cell 4: "0B0": a backward both whole (B) and in halves (I, W)`, `row 1, cell 6: "0I1": a backward both whole (B) and in halves (I, W)`,
		}},
		{"0F0,0F1,0I0,0I1,0W1\n1F0,1I0,1W0,1F1", true, []string{`row 1: "0W0" is missing`, `row 2: "1I1" is missing`, `row 2: "1W1" is missing`}},
		{"0F0,0F1,0B0\n1F0,1F1", false, []string{`row 1, cell 3: "0B0": a backward, and the plan is for inference`}},
	} {
		actions, err := Read("f", []byte(c.text), []int{0, 1}, 2, c.train)
		var faults *FaultsError
		if errors.As(err, &faults) != (c.want != nil) || (err == nil) != (actions != nil) {
			t.Fatalf("%q: %v, %v", c.text, actions, err)
		}
		if faults == nil {
			continue
		}
		if diff := cmp.Diff(c.want, faults.Faults); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		if lines := strings.Split(err.Error(), "\n"); len(lines) != len(c.want) || !strings.HasPrefix(lines[len(lines)-1], "f: row") {
			t.Errorf("%q", err)
		}
	}
	_, err := Read("f", []byte(strings.Repeat("9F0,", 100)), []int{0}, 1, true)
	var faults *FaultsError
	if !errors.As(err, &faults) || len(faults.Faults) != maxFaults+1 || faults.Faults[maxFaults] != "… and 82 more" {
		t.Errorf("%v", err)
	}
}

// FuzzRead: any bytes are a complete schedule, or an error that begins with the file. A schedule is
// the same after writing and reading.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"0F0,0F1,0B0,0B1,2F0,2F1,2B0,2B1\n1F0,1B0,1F1,1B1", "0F0,0BW0", "(0F1;1B0)OVERLAP_F_B", "0I0", "0F0,0I0,0F1,0I1,0W1,0W0,2F0,2F1,2I0,2B1,2W0\n1F0,1B0,1F1,1B1", "\"0F0\",\r\n"} {
		f.Add([]byte(text))
	}
	ranks := []int{0, 1, 0}
	f.Fuzz(func(t *testing.T, data []byte) {
		actions, err := Read("f", data, ranks, 2, true)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if strings.ContainsFunc(line, unicode.IsControl) {
					t.Fatalf("error %q", line)
				}
			}
			return
		}
		text := written(ranks, actions)
		again, err := Read("f", []byte(text), ranks, 2, true)
		if err != nil || !cmp.Equal(actions, again, cmpopts.EquateEmpty()) {
			t.Fatalf("%s: %v, %v", text, again, err)
		}
		for rank, row := range actions { // a whole backward counts as its two halves
			work := len(row)
			for _, action := range row {
				if action.Kind == order.Backward {
					work++
				}
			}
			if work != []int{12, 6}[rank] {
				t.Fatal(fmt.Sprint(actions))
			}
		}
	})
}
