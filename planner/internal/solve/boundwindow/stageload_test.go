package boundwindow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/devmap-dev/devmap/planner/internal/solve/graph"
	"github.com/devmap-dev/devmap/planner/internal/solve/netlist"
)

// TestStageLoads: in whatever windows a placement is, no stage has less to do
// than what is said of it, with any of its items; and that is often more than
// what is decided alone.
func TestStageLoads(t *testing.T) {
	t.Parallel()
	more, forced := 0, 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 61))
		const stages = 4
		problem := &graph.Problem{Kinds: []graph.Kind{{Count: stages, Capacity: math.Inf(1)}}}
		within, at := windows{}, make([]int, 12)
		for item := range at {
			at[item] = random.IntN(stages)
			problem.Nodes = append(problem.Nodes, graph.Node{
				Group: item, Time: []float64{float64(random.IntN(4))}, Size: float64(random.IntN(5)), Transfer: float64(random.IntN(6)),
			})
			for range random.IntN(3) {
				if other := random.IntN(len(at)); at[other] < at[item] || at[other] == at[item] && other < item {
					problem.Edges = append(problem.Edges, [2]int{other, item})
				}
			}
			wide := random.IntN(2)
			within.first = append(within.first, max(0, at[item]-wide*random.IntN(3)))
			within.last = append(within.last, min(stages-1, at[item]+wide*random.IntN(3)))
		}
		loads, _, err := problem.Score(at)
		if err != nil {
			t.Fatal(err)
		}
		empty := make([][]int, len(at))
		form := newForm(netlist.New(graph.NewInstance(problem, problem.Groups())), empty, empty, 0)
		form.room = 0
		for _, load := range loads {
			form.room = max(form.room, load.Size)
		}
		time, size := make([]float64, stages), make([]float64, stages)
		for item, first := range within.first {
			if first == within.last[item] {
				time[first], size[first] = time[first]+form.time[item], size[first]+form.size[item]
			}
		}
		form.paid(&within, time)
		least := form.newStageLoads(&within, time, size)
		for stage, load := range loads {
			if got := least.least(stage, -1); got > load.Total()+1e-6 {
				t.Fatalf("seed %d: stage %d has %v at least, and %v", seed, stage, got, load.Total())
			} else if got > time[stage]+1e-6 {
				more++
			}
		}
		for item, stage := range at {
			if within.first[item] < within.last[item] && least.least(stage, int32(item)) > loads[stage].Total()+1e-6 {
				t.Fatalf("seed %d: stage %d with item %d has %v at least, and %v", seed, stage, item, least.least(stage, int32(item)), loads[stage].Total())
			}
		}
		kept := within.clone()
		for stage, load := range loads {
			least.force(stage, load.Total()+1e-6)
		}
		for item, stage := range at {
			if within.first[item] > stage || within.last[item] < stage {
				t.Fatalf("seed %d: item %d is forced away from its stage", seed, item)
			}
		}
		if !slices.Equal(kept.first, within.first) {
			forced++
		}
	}
	if more < 500 || forced < 100 {
		t.Errorf("%d stages have more to do than what is decided, in %d problems items are forced", more, forced)
	}
}
