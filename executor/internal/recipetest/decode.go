package recipetest

import (
	"math"
)

// cacheKernel puts each row at its position in its sequence's ring.
func cacheKernel(run *kernelRun) {
	positions, sequences := run.size("positions"), run.size("sequences")
	for role, to := range map[string]string{"k": "keys", "v": "values"} {
		x, cache := run.operand(role), run.operand(to)
		x.each(func(i, j int64, at *float64) {
			sequence := i / (x.Rows / sequences)
			*cache.At(sequence*positions+run.position(i)%positions, j) = *at
		})
	}
}

// attentionDecode attends to the cache, in parts of a span of its positions.
func attentionDecode(run *kernelRun) {
	heads, kv, dim, positions, span := run.size("heads"), run.size("kv"), run.size("dim"), run.size("positions"), run.size("span")
	q, keys, values := run.operand("q"), run.operand("keys"), run.operand("values")
	for i := range run.size("sequences") {
		for head := range heads {
			for part := range (positions + span - 1) / span {
				out, most, sum := make([]float64, dim), math.Inf(-1), 0.
				for slot := part * span; slot < min(positions, (part+1)*span); slot++ {
					now := run.position(i)
					other := now - (now-slot+positions)%positions // the last position that is stored here
					if now < slot {
						other = slot - positions*((slot-now+positions-1)/positions)
					}
					if other < 0 || !run.sees(now, other) {
						continue
					}
					score, _ := run.pair(q, keys, i, i*positions+slot, head, head/(heads/kv))
					largest := max(most, score)
					for l := range dim {
						out[l] = out[l]*math.Exp(most-largest) + math.Exp(score-largest)**values.At(i*positions+slot, head/(heads/kv)*dim+l)
					}
					sum = sum*math.Exp(most-largest) + math.Exp(score-largest)
					most = largest
				}
				for l := range dim {
					if run.given("y") {
						*run.operand("y").At(i, head*dim+l) = out[l] / sum
					} else {
						*run.operand("parts").At(part*q.Rows+i, head*(dim+2)+l) = out[l]
					}
				}
				if run.given("parts") {
					*run.operand("parts").At(part*q.Rows+i, head*(dim+2)+dim), *run.operand("parts").At(part*q.Rows+i, head*(dim+2)+dim+1) = most, sum
				}
			}
		}
	}
}

func attentionJoin(run *kernelRun) {
	parts, dim, y := run.operand("parts"), run.size("dim"), run.operand("y")
	y.each(func(i, j int64, at *float64) {
		head, most, value, sum := j/dim*(dim+2), math.Inf(-1), 0., 0.
		for part := range run.size("parts") {
			most = max(most, *parts.At(part*y.Rows+i, head+dim))
		}
		for part := range run.size("parts") {
			row := part*y.Rows + i
			scale := math.Exp(*parts.At(row, head+dim) - most)
			value, sum = value+scale**parts.At(row, head+j%dim), sum+scale**parts.At(row, head+dim+1)
		}
		*at = value / sum
	})
}
