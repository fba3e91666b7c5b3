package costmodel

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

func TestRefusedOrders(t *testing.T) {
	for kind, why := range map[ScheduleKind]string{
		"order:FB/FB":          "",
		"v-order:FfbB/FfiwIW":  "",
		"order:":               "empty",
		"order:FB":             "of one GPU",
		"order:FB/FB/FB":       "of three",
		"order:FB/BF":          "B before F",
		"order:FB/FWI":         "W before I",
		"order:FB/FI":          "no W",
		"order:FB/FBFB":        "two micro-batches",
		"order:FB/Ff":          "a second chunk without a V",
		"order:FB/F*0,B":       "no times",
		"order:FB/F*9999999,B": "too many",
		"order:FB/FX":          "no pass",
		"order:FB/F,,B":        "an empty block",
	} {
		schedule := Schedule{Kind: kind, Stages: 2, Chunks: 1, MicroBatches: 1}
		if kind.Vee() {
			schedule.Chunks = 2
		}
		if err := schedule.Check(); (err == nil) != (why == "") {
			t.Errorf("%s (%s): %v", kind, why, err)
		}
	}
	for kind, chunks := range map[ScheduleKind]int64{"order:FB/FB": 2, "v-order:FB/FfbB": 1, "v-order:FfB/FfbB": 2} {
		schedule := Schedule{Kind: kind, Stages: 2, Chunks: chunks, MicroBatches: 1}
		if schedule.Check() == nil {
			t.Errorf("%s with %d stages on each GPU", kind, chunks)
		}
	}
	for kind, want := range map[ScheduleKind]string{ // messages have no limit here
		"order:FBFB/FFBB":           "row 0 of the order stops before its last 3 passes, at B",
		"order:FFBB/FBFB":           "",
		"order:FFIWIW/FIWFIW":       "",
		"order:FIFIWW/FFIIWW":       "row 0 of the order stops before its last 5 passes, at I",
		"order:FfbBFfbB/FfbBFfbB":   "",
		"order:FfbBFfbB/FFfbBfbB":   "row 0 of the order stops before its last 6 passes, at b",
		"order:FFffbbBB/FFffbbBB":   "",
		"v-order:FfbBFfbB/FBFB":     "",
		"v-order:FBfbFBfb/FBFB":     "row 0 of the order stops before its last 7 passes, at B",
		"v-order:FFffbbBB/FFffbbBB": "",
		"v-order:FfbBFfbB/fFbBfFBb": "row 0 of the order stops",
	} {
		schedule := Schedule{Kind: kind, Stages: 2, Chunks: 1, MicroBatches: 2}
		if kind.Chunked() {
			schedule.Chunks = 2
		}
		if err := schedule.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
	mixed := Schedule{Kind: "order:FFBFBIW", Stages: 1, Chunks: 1, MicroBatches: 3}
	if mixed.Check() == nil {
		t.Error("whole backwards and halves in one row")
	}
}

// The second stage of a V's last rank begins in the middle of its run. Other maps have none.
func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		kind   ScheduleKind
		places []int
		want   int
	}{
		{ZBV, []int{0, 0, 1, 1, 1, 0}, 4},
		{ZBV, []int{0, 1, 1, 0}, 2},
		{"v-order:", []int{0, 1, 1, 0}, 2},
		{ZBV, []int{0, 1}, -1},
		{ZBV, []int{0, 1, 0, 1}, -1},
		{ZBV, nil, -1},
		{ZBH1, []int{0, 1, 1, 0}, -1},
	} {
		if got := Middle(c.kind, c.places); got != c.want {
			t.Errorf("%s on %v: %d, want %d", c.kind, c.places, got, c.want)
		}
	}
}

func FuzzOrders(f *testing.F) {
	f.Add("order:FF,BF*6,BB/F,BF*7,B", int64(2), int64(8))
	f.Add("v-order:FfbB/FfiwIW", int64(2), int64(1))
	f.Fuzz(func(t *testing.T, text string, stages, batches int64) {
		kind := ScheduleKind(text)
		rows, err := value.OrderRows(text)
		if err != nil {
			return
		}
		again, err := value.OrderRows(value.OrderOf(kind.Vee(), rows))
		if err != nil || len(again) != len(rows) {
			t.Errorf("%q becomes %q: %v", kind, value.OrderOf(kind.Vee(), rows), err)
		}
		_ = Schedule{Kind: kind, Stages: stages, Chunks: 1, MicroBatches: batches}.Check()
	})
}
