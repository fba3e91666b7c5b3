package steptime

import (
	"math/rand/v2"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
)

// randomMap is units on devices, with times and messages that are whole
// numbers of eighths, so that sums of them do not round.
type randomMap struct {
	costmodel.Workload
	place []int
	units [][]UnitSeconds // by device
	sends [][][]float64   // by unit, from and to
}

func newRandomMap(rng *rand.Rand) *randomMap {
	m := &randomMap{Workload: costmodel.Workload{Mode: []costmodel.Mode{costmodel.Train, costmodel.Infer}[rng.IntN(2)], MicroBatches: rng.Int64N(4), Seq: 4, NewTokens: rng.Int64N(3)}}
	units, devices := 1+rng.IntN(5), 1+rng.IntN(3)
	eighths := func(top int) float64 { return float64(rng.IntN(top)) / 8 }
	for range devices {
		row := make([]UnitSeconds, units)
		for u := range row {
			row[u] = UnitSeconds{Forward: eighths(90), Issue: eighths(90), Token: eighths(90), IssueToken: eighths(90), Update: eighths(90)}
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

func (m *randomMap) step() (float64, Waits) {
	return Sequential(&m.Workload, m.place, func(u, d int) *UnitSeconds { return &m.units[d][u] }, func(u, from, to int) float64 { return m.sends[u][from][to] })
}

// sums is the step as a maximum of sums. The passes of a micro-batch, and of a token, are one list;
// for every i it adds the host's time of the first i passes and the devices' of the others.
func (m *randomMap) sums() float64 {
	type pass struct{ issue, length float64 }
	cross := func(unit, from, to int) float64 {
		if from == to {
			return 0
		}
		return m.sends[unit][from][to]
	}
	longest := func(passes []pass) float64 {
		most := 0.
		for i := range len(passes) + 1 {
			sum := 0.
			for at, p := range passes {
				if at < i {
					sum += p.issue
				} else {
					sum += p.length
				}
			}
			most = max(most, sum)
		}
		return most
	}
	var micro, token []pass
	slowest, update, last := 0., make([]float64, len(m.units)), len(m.place)-1
	for u, d := range m.place {
		s, in := m.units[d][u], 0.
		if u > 0 {
			in = cross(u-1, m.place[u-1], d)
		}
		micro, token = append(micro, pass{s.Issue, s.Forward + in}), append(token, pass{s.IssueToken, s.Token + in/4})
		update[d] += s.Update
		slowest = max(slowest, update[d])
	}
	for u := last; u >= 0 && m.Mode == costmodel.Train; u-- {
		s, in := m.units[m.place[u]][u], 0.
		if u < last {
			in = cross(u, m.place[u+1], m.place[u])
		}
		micro = append(micro, pass{s.IssueBack, s.Backward + in})
	}
	issued, worked := 0., 0.
	for _, p := range micro {
		issued, worked = issued+p.issue, worked+p.length
	}
	return longest(micro) + float64(max(1, m.MicroBatches)-1)*max(issued, worked) + float64(m.NewTokens)*longest(token) + slowest
}

// TestSequential: the clocks' step is the largest of the sums.
func TestSequential(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 10))
	for range 3000 {
		m := newRandomMap(rng)
		if step, _ := m.step(); step != m.sums() {
			t.Fatalf("%+v: %v s, the largest sum is %v", m, step, m.sums())
		}
	}
}

// TestWaitsEarliest: if several sums tie, the fewest passes are named.
func TestWaitsEarliest(t *testing.T) {
	same := func(int, int) *UnitSeconds { return &UnitSeconds{Forward: 1, Issue: 1} }
	step, waits := Sequential(&costmodel.Workload{Mode: costmodel.Infer}, []int{0, 0, 0}, same, nil)
	if step != 3 || waits != (Waits{}) {
		t.Errorf("%v s, %+v", step, waits)
	}
}
