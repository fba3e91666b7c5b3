package show

import (
	"math/rand/v2"
	"testing"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/executor/simulate"
)

// TestCurve draws the memory of steps of any length, also of fewer ticks than columns, and of none.
// Every column is between the constant bytes and the peak.
func TestCurve(t *testing.T) {
	for _, c := range []struct {
		name     string
		makespan int64
		moments  []simulate.Moment
		want     string
	}{
		{"a tick between columns", 4, []simulate.Moment{{Time: 0, Bytes: 100}, {Time: 2, Bytes: 170}}, "▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁████████████████████"},
		{"no time", 0, []simulate.Moment{{Time: 0, Bytes: 100}}, "▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁"},
	} {
		if got := curve(deviceOf(c.moments), 100, c.makespan); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	random := rand.New(rand.NewPCG(3, 7))
	for range 2000 {
		makespan, time := random.Int64N(200), int64(0)
		var moments []simulate.Moment
		for time <= makespan {
			moments = append(moments, simulate.Moment{Time: time, Bytes: 1000 + random.Int64N(5000)})
			time += 1 + random.Int64N(60)
		}
		if got := utf8.RuneCountInString(curve(deviceOf(moments), 1000, makespan)); got != curveWidth {
			t.Fatalf("%d columns of %v in %d", got, moments, makespan)
		}
	}
}

func deviceOf(moments []simulate.Moment) *simulate.Device {
	device := &simulate.Device{Memory: moments}
	for _, moment := range moments {
		if moment.Bytes > device.Peak.Bytes {
			device.Peak = moment
		}
	}
	return device
}
