package orders

import "math"

// Bound is a lower bound of every order's length, and the argument for it.
type Bound struct {
	Value int64
	Why   string
}

// The arguments.
const (
	byWork     = "work of a GPU"
	byInFlight = "micro-batches within a cap"
	BySearch   = "search" // complete
)

// Bound returns the best of the cheap bounds:
//   - A GPU cannot begin before the forwards of earlier chunks. After its last pass, the passes that
//     wait for it follow. This holds for any set of its passes; the sets are those with at least so
//     much to follow.
//   - If a chunk's rings have at most k sets within the cap, with one of all others, the forward of
//     micro-batch i + k waits for the gradient of micro-batch i.
func (problem *Problem) Bound() Bound {
	way := newPaths(problem)
	best, least := Bound{Why: byWork}, problem.LeastCaps()
	add := func(value int64, why string) {
		if value > best.Value {
			best = Bound{value, why}
		}
	}
	for gpu, chunks := range problem.of() {
		if len(chunks) == 0 {
			continue
		}
		head := int64(math.MaxInt64)
		for _, i := range chunks {
			head = min(head, way.head[i])
			add(problem.inFlight(way, i, problem.Caps[gpu]-least[gpu]), byInFlight)
		}
		for _, i := range chunks {
			for kind := range problem.Chunks[i].kinds() {
				add(head+problem.setWork(way, chunks, way.tail[i][kind])+way.tail[i][kind], byWork)
			}
		}
	}
	return best
}

// setWork returns the time of all passes of chunks that have at least this much to follow.
func (problem *Problem) setWork(way *paths, chunks []int, least int64) (work int64) {
	for _, i := range chunks {
		for kind := range problem.Chunks[i].kinds() {
			if way.tail[i][kind] >= least {
				work += int64(problem.MicroBatches) * problem.Chunks[i].takes(kind)
			}
		}
	}
	return work
}

// inFlight returns the length of the rounds of micro-batches that fit at a time, with spare bytes
// beyond one.
func (problem *Problem) inFlight(way *paths, i int, spare int64) int64 {
	chunk := &problem.Chunks[i]
	bytes := chunk.ToInput + chunk.ToWeight
	if bytes == 0 {
		return 0
	}
	count, life, tail := int64(problem.MicroBatches), way.life[i], way.tail[i][Input]
	most := 1 + spare/bytes
	if chunk.ToInput == 0 && !chunk.Joint {
		life, tail = life+chunk.Weight, 0
	}
	return way.head[i] + (count+most-1)/most*life + tail
}

// paths are the shortest ways of a micro-batch, by chunk.
type paths struct {
	head []int64        // to the beginning of its forward
	life []int64        // from there to the end of its input's gradient
	tail [][kinds]int64 // from the end of a pass to the end of all that waits for it
}

func newPaths(problem *Problem) *paths {
	count := len(problem.Chunks)
	out := &paths{make([]int64, count), make([]int64, count), make([][kinds]int64, count)}
	for i := 1; i < count; i++ {
		out.head[i] = out.head[i-1] + problem.Chunks[i-1].Forward + problem.Chunks[i-1].Send
	}
	for i := count - 1; i >= 0; i-- {
		chunk := &problem.Chunks[i]
		out.life[i] = chunk.Forward + chunk.Input
		if i+1 < count {
			out.life[i] += chunk.Send + chunk.Back + out.life[i+1]
		}
	}
	for i := range count {
		chunk := &problem.Chunks[i]
		if !chunk.Joint {
			out.tail[i][Input] = chunk.Weight
		}
		if i > 0 {
			before := &problem.Chunks[i-1]
			out.tail[i][Input] = max(out.tail[i][Input], before.Back+before.Input+out.tail[i-1][Input])
		}
	}
	for i := range count {
		out.tail[i][Forward] = out.life[i] - problem.Chunks[i].Forward + out.tail[i][Input]
	}
	return out
}
