package simulate

import (
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// makespan returns when the last instruction ends.
func (sim *simulation) makespan() int64 {
	last := int64(0)
	for _, end := range sim.end {
		last = max(last, end)
	}
	return last
}

// path goes back from the instruction that ends last, always to the one that let it start. If
// several end last, it begins with the first of the program.
func (sim *simulation) path() []int32 {
	last := program.None
	for i := range sim.end {
		if last == program.None || sim.end[i] > sim.end[last] {
			last = int32(i)
		}
	}
	var path []int32
	for i := last; i != program.None; i = sim.cause[i] {
		path = append(path, i)
	}
	slices.Reverse(path)
	return path
}
