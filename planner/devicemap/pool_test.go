package devicemap

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// TestTightNote: one note names all tight GPUs, with the range of their figures.
func TestTightNote(t *testing.T) {
	device := func(number int, verdict Verdict, free, slack int64) Prediction {
		prediction := Prediction{Device: number, Verdict: verdict, HeadroomBytes: free << 30}
		prediction.Predicted.SlackBytes[1] = slack << 30
		return prediction
	}
	for want, devices := range map[string][]Prediction{
		"GPU 1 is tight: 2.00 GiB free at the peak, and the allocator may reserve 3.00 GiB beyond it; ":                                      {device(0, fits, 9, 1), device(1, tight, 2, 3)},
		"GPUs 0–1 are tight: 2.00 GiB free at the peak, and the allocator may reserve 3.00 GiB beyond it; ":                                  {device(0, tight, 2, 3), device(1, tight, 2, 3)},
		"GPUs 0–2, 4 and 6 are tight: 1.00 GiB to 4.00 GiB free at the peak, and the allocator may reserve 3.00 GiB to 7.00 GiB beyond it; ": {device(0, tight, 2, 3), device(1, tight, 1, 3), device(2, tight, 4, 7), device(3, fits, 9, 1), device(4, tight, 2, 3), device(5, fits, 9, 9), device(6, tight, 2, 3)},
	} {
		if notes := poolNotes(devices, "torch"); len(notes) != 1 || !strings.HasPrefix(notes[0], want) {
			t.Errorf("%q, want %q", notes, want)
		}
	}
	if notes := poolNotes([]Prediction{device(0, fits, 1, 1)}, costmodel.Devmap); notes != nil {
		t.Errorf("nothing is tight: %q", notes)
	}
}

// TestLoadingNote: the note names the GPU with the least memory left while a weight is converted.
func TestLoadingNote(t *testing.T) {
	table := &costmodel.Table{Units: []costmodel.Unit{{Loading: 4 << 30}, {}, {Loading: 2 << 30}}}
	devices := []Prediction{{Device: 0, Budget: 40 << 30}, {Device: 1, Budget: 11 << 30}}
	devices[0].Predicted.ParamsBytes, devices[1].Predicted.ParamsBytes = 30<<30, 10<<30
	if notes := loadingNotes(table, Map{0, CPU, 1}, devices); len(notes) != 1 ||
		!strings.HasPrefix(notes[0], "loading: GPU 1 holds up to 12.00 GiB at once, its weights (10.00 GiB) and 2.00 GiB to convert the largest, and lacks 1.00 GiB") {
		t.Errorf("%q", notes)
	}
	if notes := loadingNotes(table, Map{CPU, 0, Nowhere}, devices); notes != nil {
		t.Errorf("nothing is converted on a GPU: %q", notes)
	}
}
