package stages

// search looks for pipelines whose stages are differences of two sets of a
// family.
type search struct {
	p        *Problem
	w        *web
	f        *family
	capacity float64
	// fastest is the time of a set with the fastest choice of each node.
	fastest []float64
	// sends is what it takes to send from a set to what is outside it.
	sends []float64
	// views are by micro-batches in flight, made when asked for.
	views []*view
	// solved keeps what the exact knapsack gave.
	solved map[stageKey]timeRange
	// The walk below one set: when a set was last met, and the transfers of
	// the stage between the two.
	met       []int32
	walk      int32
	transfers []float64
	stack     []int32
}

type (
	stageKey  struct{ upper, lower, y int32 }
	timeRange struct{ lower, upper float64 }
)

func newSearch(p *Problem, w *web, f *family) *search {
	s := &search{
		p: p, w: w, f: f, capacity: p.Capacity, solved: make(map[stageKey]timeRange),
		met: make([]int32, f.len()), transfers: make([]float64, f.len()),
	}
	s.sends = s.sums(w.sent)
	s.fastest = s.sums(func(v int) float64 { t, _ := s.view(1).nodes[v].fastest(); return t })
	return s
}

func (s *search) view(y int) *view {
	for len(s.views) < y {
		s.views = append(s.views, newView(s.p, len(s.views)+1))
	}
	return s.views[y-1]
}

// sums adds a value of the nodes up over every set.
func (s *search) sums(of func(node int) float64) []float64 {
	value := make([]float64, len(s.w.order))
	for v := range value {
		value[v] = of(v)
	}
	sum := make([]float64, s.f.len())
	for i := s.f.len() - 1; i >= 0; i-- {
		// Every set stands after one that is larger by a node; the smaller it
		// is, the later it was found.
		if below := s.f.below[i]; len(below) > 0 {
			sum[i] = sum[below[0].to] + value[below[0].node]
		}
	}
	return sum
}
