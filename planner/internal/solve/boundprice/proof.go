package boundprice

import "github.com/devmap-dev/devmap/planner/internal/solve/boundcheck"

// proof writes down what the trial has just found, in terms of the problem as it
// was posed.
func (try *trial) proof() *boundcheck.Proof {
	group := func(item int32) int { return try.Problem.Nodes[try.Nodes[item][0]].Group }
	proof := &boundcheck.Proof{Limit: try.limit, Price: make(map[int]float64), Kinds: make([]boundcheck.Kind, len(try.Count))}
	for item, price := range try.asked {
		proof.Price[group(int32(item))] = price
	}
	for at, walk := range try.walkers {
		said := &proof.Kinds[try.kinds[at]]
		said.Rent, said.PerLoad, said.PerByte = try.most[at], walk.slopes[0].lambda, walk.mu
		for _, item := range walk.Order {
			said.Order = append(said.Order, group(item))
		}
		for _, wire := range walk.Left {
			var left []int
			for _, item := range try.Wires[wire].Members {
				left = append(left, group(item))
			}
			said.Left = append(said.Left, left)
		}
	}
	return proof
}
