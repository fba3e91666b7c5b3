package stages

import (
	"context"
	"math"
)

// probe searches for a pipeline whose stages are all within the limit. It reaches sets from the end
// of the graph. A way to run the nodes after a set uses some devices and replicas. More of either
// leaves less to earlier stages, and more replicas mean more micro-batches in flight there. So only
// ways that are nondominated in both count, and Piper's table over all numbers of devices and
// replicas (§4.1) shrinks to a few labels per set. A label's next stage takes the fewest replicas
// within the limit and the capacity, since more would be dominated.
//
// Its cost is the number of nested pairs of sets times the labels.
type probe struct {
	*search
	limit  float64
	labels [][]label
	// next is the least time above the limit that a refused stage needs. The answer is the same
	// between the limit and next.
	next    float64
	stopped bool
	// left is the most devices that a label of the current set leaves. minMemory is the least
	// memory of sets in the stage before it, by tensor degree.
	left      int
	minMemory [][]float64
	// delta is each node's change of the transfers of a stage that ends with the current set, by
	// tensor degree.
	delta []float64
}

// label is a way to run the nodes after a set: its devices and replicas, and its first stage with
// these degrees. That stage ends with the upper set, whose label is then.
type label struct {
	devices, replicas      int32
	upper, then            int32
	tensor, data, inFlight int32 // inFlight: micro-batches in that stage
}

func (within *search) ask(ctx context.Context, limit float64) *probe {
	attempt := &probe{
		search: within, limit: limit, next: math.Inf(1),
		labels: make([][]label, within.sets.Len()), delta: make([]float64, len(within.Nodes)*len(within.Tensor)),
	}
	attempt.labels[0] = []label{{}}
	for upper := range within.sets.Below {
		if upper%8 == 0 && ctx.Err() != nil {
			attempt.stopped = true
			return attempt
		}
		if len(attempt.labels[upper]) > 0 {
			attempt.below(ctx, upper)
		}
	}
	return attempt
}

func (attempt *probe) reached() bool {
	return !attempt.stopped && len(attempt.labels[attempt.sets.Empty]) > 0
}

// below puts every stage that ends with the upper set before each of its labels.
func (attempt *probe) below(ctx context.Context, upper int) {
	attempt.before(upper)
	attempt.cross(upper)
	degrees := len(attempt.Tensor)
	attempt.walk++
	attempt.stack = append(attempt.stack[:0], int32(upper))
	clear(attempt.transfers[upper*degrees : (upper+1)*degrees])
	for visits := 0; len(attempt.stack) > 0; visits++ {
		if visits%4096 == 4095 && ctx.Err() != nil {
			attempt.stopped = true
			return
		}
		at := int(attempt.stack[len(attempt.stack)-1])
		attempt.stack = attempt.stack[:len(attempt.stack)-1]
		for _, step := range attempt.sets.Below[at] {
			lower := int(step.To)
			if attempt.met[lower] == attempt.walk {
				continue
			}
			attempt.met[lower] = attempt.walk
			if !attempt.feasible(upper, lower) {
				continue
			}
			attempt.stack = append(attempt.stack, step.To)
			for tensor := range degrees {
				attempt.transfers[lower*degrees+tensor] = attempt.transfers[at*degrees+tensor] + attempt.delta[int(step.Node)*degrees+tensor]
			}
			attempt.stages(upper, lower)
		}
	}
}

// before computes the data that all stages ending with the upper set share.
func (attempt *probe) before(upper int) {
	attempt.left, attempt.minMemory = 0, attempt.minMemory[:0]
	for i := range attempt.labels[upper] {
		attempt.left = max(attempt.left, attempt.Devices-int(attempt.labels[upper][i].devices))
	}
	inFlight := 1
	if upper > 0 {
		inFlight = 2 // only the last stage has fewer
	}
	for tensor := range attempt.Tensor {
		attempt.minMemory = append(attempt.minMemory, attempt.least(tensor, inFlight))
	}
}

// cross computes each node's change of the transfers of a stage that ends with the upper set. It is
// the same in every such stage: when the node joins, the nodes it reads are outside, and its
// readers are inside if the upper set has them.
func (attempt *probe) cross(upper int) {
	for node := range attempt.Nodes {
		for tensor := range attempt.Tensor {
			sum := 0.0
			for _, edge := range attempt.in[node] {
				sum += edge.Receive[tensor]
			}
			for _, edge := range attempt.out[node] {
				if attempt.sets.Has(upper, edge.node) {
					sum -= edge.Receive[tensor]
				} else {
					sum += edge.Send[tensor]
				}
			}
			attempt.delta[node*len(attempt.Tensor)+tensor] = sum
		}
	}
}

// feasible is false if neither this stage nor a larger one is possible. Some degree of tensor
// parallelism must allow its nodes, and the devices left must be enough for their time and memory.
func (attempt *probe) feasible(upper, lower int) bool {
	if !attempt.enough(attempt.work[upper]-attempt.work[lower], attempt.left) {
		return false
	}
	for tensor, least := range attempt.minMemory {
		if attempt.lacks[tensor][upper] == attempt.lacks[tensor][lower] && least[upper]-least[lower] <= attempt.Capacity*(1+rounding) {
			return true
		}
	}
	return false
}

// enough reports that so many devices can do the work within the limit.
func (attempt *probe) enough(work float64, devices int) bool {
	if work <= float64(devices)*attempt.limit*(1+rounding) {
		return true
	}
	if devices > 0 {
		attempt.next = min(attempt.next, work/float64(devices))
	}
	return false
}
