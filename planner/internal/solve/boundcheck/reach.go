package boundcheck

// reach is what sets of one standing come to at best: the least load, and the most
// worth less what load costs.
type reach struct{ load, gain float64 }

func (best reach) along(move move, perLoad float64) reach {
	return reach{load: best.load + move.load, gain: best.gain + move.worth - perLoad*move.load}
}

func (best reach) or(other reach) reach {
	return reach{load: min(best.load, other.load), gain: max(best.gain, other.gain)}
}

// beyond says that no set of a standing can become worth more than the rent within
// the limit: it is over it, or whatever the rest adds, the whole limit's price
// is not enough.
func (all *sums) beyond(best reach, rest float64) bool {
	const rounding = 1e-9
	limit, rent := all.proof.Limit*(1+rounding), all.said.Rent*(1-rounding)
	return best.load > limit || all.said.PerLoad >= 0 && best.gain+rest+all.said.PerLoad*limit <= rent
}

// rest is the most that the groups from each step on can add, less what their own
// load costs: outputs only cost.
func (all *sums) rest(order []int) []float64 {
	rest := make([]float64, len(order)+1)
	for step := len(order) - 1; step >= 0; step-- {
		own := all.moved(order[step], 0, true)
		rest[step] = rest[step+1]
		if !own.never {
			rest[step] += max(0, own.worth-all.said.PerLoad*own.load)
		}
	}
	return rest
}
