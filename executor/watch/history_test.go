package watch

import (
	"testing"
	"time"
)

// TestReadings: the most and the least of a span survive when entries are joined, and there are few.
func TestReadings(t *testing.T) {
	var readings Readings
	const spike = 1 << 40
	var last time.Duration
	for i := range int64(400000) {
		last = time.Duration(i) * 10 * time.Millisecond
		bytes, others := 1000+i%7, i%3
		if i == 123457 {
			bytes, others = spike, spike
		}
		readings.add(last, bytes, others)
	}
	if count := len(readings.Used); count > mostReadings || count < mostReadings/2 {
		t.Errorf("%d entries", count)
	}
	if end := time.Duration(len(readings.Used)) * readings.Period; end < last || end > last+2*readings.Period {
		t.Errorf("the entries end at %v, the readings at %v", end, last)
	}
	at := int(123457 * 10 * time.Millisecond / readings.Period)
	for i := range readings.Used {
		if (readings.Most[i] == spike) != (i == at) || readings.Used[i] != 1000 || (readings.Others[i] == spike) != (i == at) || readings.Others[i] < 2 {
			t.Fatalf("entry %d is %d to %d, others %d; the spike is in %d", i, readings.Used[i], readings.Most[i], readings.Others[i], at)
		}
	}
}

// TestReadingsGap: a gap repeats the entry before it.
func TestReadingsGap(t *testing.T) {
	var readings Readings
	readings.add(0, 10, 1)
	readings.add(0, 30, 1)
	readings.add(4*firstPeriod, 20, 0)
	for i, want := range [][2]int64{{10, 30}, {10, 10}, {10, 10}, {10, 10}, {20, 20}} {
		if got := [2]int64{readings.Used[i], readings.Most[i]}; got != want {
			t.Errorf("entry %d is %v, want %v", i, got, want)
		}
	}
}
