package chaintime

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/steptime"
)

// randomMap is a map of units with times and messages. All are whole numbers of eighths, so sums do
// not round.
type randomMap struct {
	costmodel.Workload
	place []int
	units [][]steptime.UnitSeconds // by device
	sends [][][]float64            // by unit, from and to
}

func newRandomMap(rng *rand.Rand) *randomMap {
	m := &randomMap{Workload: costmodel.Workload{Mode: []costmodel.Mode{costmodel.Train, costmodel.Infer}[rng.IntN(2)], MicroBatches: rng.Int64N(4), Seq: 4, NewTokens: rng.Int64N(3)}}
	units, devices := 1+rng.IntN(5), 1+rng.IntN(3)
	eighths := func(top int) float64 { return float64(rng.IntN(top)) / 8 }
	for range devices {
		row := make([]steptime.UnitSeconds, units)
		for u := range row {
			row[u] = steptime.UnitSeconds{Forward: eighths(90), Issue: eighths(90), Token: eighths(90), IssueToken: eighths(90), Update: eighths(90)}
			if m.Mode == costmodel.Train {
				row[u].Backward, row[u].IssueBack = eighths(90), eighths(90)
			}
		}
		m.units = append(m.units, row)
	}
	for range units {
		m.place = append(m.place, rng.IntN(devices))
		rows := make([][]float64, devices)
		for from := range rows {
			rows[from] = make([]float64, devices)
			for to := range rows[from] {
				rows[from][to] = 4 * eighths(30)
			}
		}
		m.sends = append(m.sends, rows)
	}
	return m
}

func (m *randomMap) step() (float64, steptime.Waits) {
	return steptime.Sequential(&m.Workload, m.place, func(u, d int) *steptime.UnitSeconds { return &m.units[d][u] }, func(u, from, to int) float64 { return m.sends[u][from][to] })
}

// sum returns the map's sum at given waits.
func (m *randomMap) sum(waits steptime.Waits) float64 {
	sum, slowest, update := 0., 0., make([]float64, len(m.units))
	for u, d := range m.place {
		sum += weighted(&m.Workload, waits, len(m.place), u, &m.units[d][u])
		update[d] += m.units[d][u].Update
		slowest = max(slowest, update[d])
		if u+1 < len(m.place) && m.place[u+1] != d {
			there, back, _ := crossings(&m.Workload, waits, len(m.place), u)
			sum += there*m.sends[u][d][m.place[u+1]] + back*m.sends[u][m.place[u+1]][d]
		}
	}
	return sum + slowest
}

// TestWaits: the step is the largest of the sums at all waits, and the sum at its own waits.
func TestWaits(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 10))
	for range 3000 {
		m := newRandomMap(rng)
		step, own := m.step()
		if got := m.sum(own); got != step {
			t.Fatalf("%+v: %v s, but %v at its own waits %+v", m, step, got, own)
		}
		most, passes := 0., len(m.place)
		if m.Mode == costmodel.Train {
			passes *= 2
		}
		for micro := range passes + 1 {
			for token := range len(m.place) + 1 {
				most = max(most, m.sum(steptime.Waits{Micro: micro, Token: token}), m.sum(steptime.Waits{Micro: micro, Token: token, Host: true}))
			}
		}
		if most != step {
			t.Fatalf("%+v: %v s, the largest sum is %v", m, step, most)
		}
	}
}
