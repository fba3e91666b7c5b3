package partition

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

var inf = math.Inf(1)

func TestZZAnneal(t *testing.T) {
	for _, f := range throwFiles(t) {
		p := throwRead(t, f)
		in := newInstance(p, p.groups())
		l := newNetlist(in)
		steps, _ := strconv.Atoi(os.Getenv("STEPS"))
		hot, _ := strconv.ParseFloat(os.Getenv("HOT"), 64)
		cold, _ := strconv.ParseFloat(os.Getenv("COLD"), 64)
		sq, _ := strconv.Atoi(os.Getenv("SQ"))
		for seed := range uint64(3) {
			rng := rand.New(rand.NewPCG(seed, 1))
			start := make([]int32, len(in.nodes))
			for i := range start {
				start[i] = int32(rng.IntN(p.Kinds[0].Count))
			}
			a := newAnnealer(newPlacement(l, start), rng)
			total := 0.0
			for _, x := range in.time[0] {
				total += x
			}
			a.unit = total / float64(p.Kinds[0].Count) * 1.05
			if u := os.Getenv("UNIT"); u != "" {
				a.unit, _ = strconv.ParseFloat(u, 64)
			}
			a.squarings = sq
			t0 := time.Now()
			a.run(context.Background(), steps, hot, cold)
			t.Logf("%s %d items: %.4f in %v", filepath.Base(filepath.Dir(f))[:1]+"/"+filepath.Base(f), len(start), a.bestLoad, time.Since(t0).Round(time.Millisecond))
		}
	}
}
