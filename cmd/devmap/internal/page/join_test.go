package page

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/executor/program"
)

// TestSamples: a curve of few points keeps its ends, its peak and the least of each part.
func TestSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		arena := round%2 == 1 // of one size, with idle bytes
		samples := make([]sample, 1+rng.IntN(3000))
		peak := 0
		for i := range samples {
			bytes := sizes{ofParams: 100, ofActivations: rng.Int64N(1 << 30)}
			if arena {
				bytes[ofIdle] = 1<<31 - bytes.total()
			}
			samples[i] = sample{int64(i), "m", bytes, bytes.total()}
			if samples[i].used() > samples[peak].used() {
				peak = i
			}
		}
		most := 24 + rng.IntN(400)
		one := new(Page).ofSamples(samples, peak, most)
		if len(one.X) > most || one.X[0] != 0 || one.X[len(one.X)-1] != int64(len(samples)-1) || one.X[one.Peak] != int64(peak) {
			t.Fatalf("%d points of at most %d from %d samples: %d to %d, peak %d of %d", len(one.X), most, len(samples), one.X[0], one.X[len(one.X)-1], one.X[one.Peak], peak)
		}
		least := slices.MinFunc(samples, func(a, b sample) int { return int(a.used() - b.used()) }).used()
		if used := usedBy(&one); slices.Min(used) != least || slices.Max(used) != samples[peak].used() {
			t.Fatalf("%d to %d, and the samples are %d to %d", slices.Min(used), slices.Max(used), least, samples[peak].used())
		}
	}
}

// usedBy are the bytes of a curve's points that are not idle.
func usedBy(one *curve) (used []int64) {
	used = slices.Clone(one.Total)
	for _, band := range one.Bands {
		for i := range used {
			if band.Category == ofIdle {
				used[i] -= append(band.Bytes, slices.Repeat([]int64{band.Constant}, len(used))...)[i]
			}
		}
	}
	return used
}

// TestJoinSpans: joined spans are few, in order, apart, and cover what was there.
func TestJoinSpans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var all []spanOf
		now := int64(0)
		for i := range 1 + rng.IntN(2000) {
			now += rng.Int64N(3) * rng.Int64N(50)
			end := now + 1 + rng.Int64N(20)
			all = append(all, spanOf{now, end, []string{"forward", "backward"}[rng.IntN(2)], "l", int64(i / 7)})
			now = end
		}
		most := 40 + rng.IntN(100)
		joined := joinSpans(slices.Clone(all), most)
		if len(joined) > most || joined[0].start != all[0].start || joined[len(joined)-1].end != now {
			t.Fatalf("%d spans of at most %d, from %d to %d", len(joined), most, joined[0].start, joined[len(joined)-1].end)
		}
		for i := 1; i < len(joined); i++ {
			if joined[i].start < joined[i-1].end {
				t.Fatalf("span %d begins at %d, before %d", i, joined[i].start, joined[i-1].end)
			}
		}
		for _, span := range all {
			if !slices.ContainsFunc(joined, func(one spanOf) bool { return one.start <= span.start && span.end <= one.end }) {
				t.Fatalf("%+v is in no span", span)
			}
		}
	}
}

// TestJoinRects: joined rectangles are few, and cover what was there.
func TestJoinRects(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	classes := []program.Class{program.Saved, program.Scratch}
	for range 100 {
		var all []rect
		for range 1 + rng.IntN(1500) {
			buffer := &program.Buffer{Offset: 256 * rng.Int64N(50), Bytes: 256 * (1 + rng.Int64N(5)), Class: classes[rng.IntN(2)]}
			from := rng.Int64N(10000)
			all = append(all, rect{buffer, buffer.Offset, buffer.Offset + buffer.Bytes, from, from + 1 + rng.Int64N(300), 1})
		}
		most := 24 + rng.IntN(200)
		joined, count := joinRects(all, most), 0
		for _, one := range joined {
			count += one.count
		}
		if len(joined) > most || count != len(all) {
			t.Fatalf("%d rectangles of at most %d, of %d of %d buffers", len(joined), most, count, len(all))
		}
		for _, one := range all {
			if !slices.ContainsFunc(joined, func(big rect) bool {
				return big.Class == one.Class && big.low <= one.low && one.high <= big.high && big.from <= one.from && one.to <= big.to
			}) {
				t.Fatalf("%+v is in no rectangle", one)
			}
		}
	}
}

// TestModules: blocks that follow each other are one row.
func TestModules(t *testing.T) {
	page := new(Page)
	var all []holding
	for _, name := range []string{"model.embed", "model.layers.0", "model.layers.1", "model.layers.2", "model.layers.4", "lm_head"} {
		all = append(all, holding{owner: name, bytes: sizes{10}})
	}
	var got []string
	for _, one := range page.modules(all, 100) {
		got = append(got, page.Names[one.Name])
	}
	if want := []string{"model.embed", "model.layers.0 – model.layers.2", "model.layers.4", "lm_head"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	few, bytes := page.modules(all, 2), int64(0)
	for _, one := range few {
		bytes += one.Bytes
	}
	if len(few) != 2 || bytes != 60 {
		t.Errorf("%+v", few)
	}
}
