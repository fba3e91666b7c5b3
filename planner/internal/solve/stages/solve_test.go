package stages_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/stages"
)

// line returns a chain of nodes, each with one choice on one device and one on two.
func line(times ...float64) *stages.Problem {
	p := &stages.Problem{Devices: 8, Replicas: 8, Data: []int{1, 2, 4, 8}, Tensor: []int{1, 2}, Capacity: math.Inf(1), Resync: 0.1}
	for i, time := range times {
		p.Nodes = append(p.Nodes, stages.Node{Name: string(rune('a' + i)), Choices: [][]stages.Choice{{{Time: time, Weights: 1}}, {{Time: time * 0.6, Weights: 0.5}}}})
		if i > 0 {
			p.Edges = append(p.Edges, stages.Edge{From: i - 1, To: i, Send: []float64{0, 0}, Receive: []float64{0, 0}})
		}
	}
	return p
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*stages.Problem)
		want   string
	}{
		{func(p *stages.Problem) { p.Nodes, p.Edges = nil, nil }, "no nodes"},
		{func(p *stages.Problem) { p.Devices = 0 }, "0 devices"},
		{func(p *stages.Problem) { p.Replicas = 0 }, "0 replicas"},
		{func(p *stages.Problem) { p.Capacity = math.NaN() }, "a capacity of NaN"},
		{func(p *stages.Problem) { p.Resync = math.Inf(1) }, "a time of +Inf a byte"},
		{func(p *stages.Problem) { p.Data = []int{2, 1} }, "degree 1 of data parallelism"},
		{func(p *stages.Problem) { p.Tensor = nil }, "no degree of tensor parallelism"},
		{func(p *stages.Problem) { p.Nodes[1].Choices = [][]stages.Choice{nil, nil} }, `nodes[1] "b": no way to run it`},
		{func(p *stages.Problem) { p.Nodes[1].Choices = p.Nodes[1].Choices[:1] }, `nodes[1] "b": ways for 1 degrees of 2`},
		{func(p *stages.Problem) { p.Nodes[1].Choices[0][0].Time = -1 }, `nodes[1] "b", degree 0, choice 0: a time of -1`},
		{func(p *stages.Problem) { p.Nodes[1].Choices[0][0].Fixed = math.Inf(1) }, `nodes[1] "b", degree 0, choice 0: memory of 0 a micro-batch and +Inf`},
		{func(p *stages.Problem) { p.Edges[0].To = 7 }, "edges[0]: from 0 to 7"},
		{func(p *stages.Problem) { p.Edges[0].Send[1] = math.NaN() }, "edges[0]: a time of NaN"},
		{func(p *stages.Problem) { p.Edges[0].Send = nil }, "edges[0]: times of 0 and 2 degrees for 2"},
		{func(p *stages.Problem) { p.Edges[1].From, p.Edges[1].To = 1, 0 }, `nodes read each other in a circle: "a" → "b" → "a"`},
	} {
		p := line(1, 2, 3)
		c.change(p)
		if _, err := stages.Solve(context.Background(), p, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestScoreRefuses(t *testing.T) {
	t.Parallel()
	p := line(1, 2, 3)
	p.Capacity = 20
	p.Nodes[0].Choices[0][0].InFlight = 7
	one, two := stages.Degrees{Data: 1, Tensor: 1}, stages.Degrees{Data: 2, Tensor: 2}
	for _, c := range []struct {
		stages        []stages.Degrees
		stage, choice []int
		want          string
	}{
		{[]stages.Degrees{one, one}, []int{0, 0, 1}, []int{0, 0, 0}, ""},
		{[]stages.Degrees{one, two}, []int{0, 0, 1}, []int{0, 0, 0}, "stage 0 holds 21 bytes, more than its budget of 20"},
		{[]stages.Degrees{one}, []int{0, 0}, []int{0, 0, 0}, "2 stages"},
		{[]stages.Degrees{one}, []int{0, 0, 1}, []int{0, 0, 0}, `node "c": stage 1 of 1`},
		{[]stages.Degrees{one, one}, []int{1, 1, 1}, []int{0, 0, 0}, "stage 0 of 2 is empty"},
		{[]stages.Degrees{one}, []int{0, 0, 0}, []int{0, 1, 0}, `node "b": there is no choice 1 on 1`},
		{[]stages.Degrees{one, one}, []int{0, 1, 0}, []int{0, 0, 0}, `node "c" in stage 0 reads "b" in stage 1`},
		{[]stages.Degrees{{Data: 3, Tensor: 1}}, []int{0, 0, 0}, []int{0, 0, 0}, "stage 0: 3 replicas of 1"},
		{[]stages.Degrees{{Data: 8, Tensor: 2}}, []int{0, 0, 0}, []int{0, 0, 0}, "16 devices of 8"},
	} {
		_, _, err := p.Score(&stages.Plan{Stages: c.stages, Stage: c.stage, Choice: c.choice})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v %v %v: %v, want %q", c.stages, c.stage, c.choice, err, c.want)
		}
	}
}

// TestShares: a stage's times are the shares of its replicas. Its memory counts the micro-batches
// of all stages after it.
func TestShares(t *testing.T) {
	t.Parallel()
	p := line(8, 8)
	p.Edges[0].Send, p.Edges[0].Receive = []float64{2, 0}, []float64{0, 6}
	p.Nodes[0].Choices[0][0].InFlight, p.Nodes[0].Choices[0][0].Fixed = 3, 1
	loads, largest, err := p.Score(&stages.Plan{Stages: []stages.Degrees{{Data: 2, Tensor: 1}, {Data: 1, Tensor: 2}}, Stage: []int{0, 1}, Choice: []int{0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	// ⌈(2 + 1)/2⌉ = 2 in flight; 8/2 + 2/2 + 0.1·1·½; 8·0.6 + 6.
	if loads[0].InFlight != 2 || loads[0].Memory != 7 || math.Abs(loads[0].Total()-5.05) > 1e-12 || math.Abs(largest-10.8) > 1e-12 {
		t.Errorf("%+v, largest %v", loads, largest)
	}
}
