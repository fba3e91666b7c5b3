package boundwindow

import "math"

// proved is the bound that the latest answer proves, worked out from its flows
// alone: whatever found them, a flow that keeps the capacities and is lost
// nowhere is not more than any cut. It says nothing, −Inf, where a multiplier is
// not what it must be or a flow does not keep its rules.
func (dual *dual) proved() float64 {
	sum := 0.0
	for stage, weight := range dual.weight {
		if !(weight >= 0 && dual.rent[stage] >= 0) {
			return math.Inf(-1)
		}
		sum += weight
	}
	if math.Abs(sum-float64(dual.stages)) > 1e-9*float64(dual.stages) || !dual.shared() {
		return math.Inf(-1)
	}
	total := 0.0
	for boundary, cut := range dual.cuts {
		of := dual.flowAt(boundary, cut)
		if math.IsInf(of, -1) {
			return of
		}
		total += of
	}
	last := dual.stages - 1
	for item, time := range dual.time {
		total += dual.weight[last]*time + dual.rent[last]*dual.size[item]
	}
	for _, rent := range dual.rent {
		total -= rent * dual.room
	}
	return total / float64(dual.stages)
}

// shared: what the boundaries have of a wire is what two stages pay at most.
func (dual *dual) shared() bool {
	for wire, shares := range dual.share {
		low, high := math.Inf(1), math.Inf(1)
		for stage, weight := range dual.weight {
			if dual.tail[wire][0] <= stage && stage <= dual.tail[wire][1] {
				low = min(low, weight)
			}
			if dual.head[wire][0] <= stage && stage <= dual.head[wire][1] {
				high = min(high, weight)
			}
		}
		sum := 0.0
		for _, share := range shares {
			if share < 0 {
				return false
			}
			sum += share
		}
		if sum*dual.worth[wire] > dual.wires[wire].Cost*(low+high)*(1+1e-9) {
			return false
		}
	}
	return true
}

// flowAt is what a boundary costs at least, by its flow.
func (dual *dual) flowAt(boundary int, cut *cut) float64 {
	cost := func(item int) float64 {
		return (dual.weight[boundary]-dual.weight[boundary+1])*dual.time[item] + (dual.rent[boundary]-dual.rent[boundary+1])*dual.size[item]
	}
	worth := func(wire int32) float64 {
		return dual.worth[wire] * dual.share[wire][boundary-dual.tail[wire][0]]
	}
	room := make([]float64, len(cut.Left))
	least := 0.0
	for item, node := range cut.node {
		if node == inside {
			least += cost(item)
		}
	}
	for i, item := range cut.free {
		of := cost(int(item))
		least += min(of, 0)
		room[cut.take[i]], room[cut.leave[i]] = max(-of, 0), max(of, 0)
	}
	for _, arc := range cut.fixed {
		room[arc] = math.Inf(1)
	}
	for _, wire := range cut.always {
		least += worth(wire)
	}
	for i, arc := range cut.arcs {
		room[arc] = worth(cut.wires[i])
	}
	kept := make(map[int32]int64)
	for arc := 0; arc < len(cut.Left); arc += 2 {
		sent, left := cut.Left[arc+1], cut.Left[arc]
		from, to := cut.Ends(arc)
		// One unit more is what costs below zero are rounded by.
		if sent < 0 || left < 0 || float64(sent-1)*dual.unit > room[arc]*(1+1e-12) {
			return math.Inf(-1)
		}
		kept[from] -= sent
		kept[to] += sent
	}
	for node, amount := range kept {
		if node != inside && node != outside && amount != 0 {
			return math.Inf(-1)
		}
	}
	return least + float64(kept[outside]-int64(len(cut.free)))*dual.unit
}
