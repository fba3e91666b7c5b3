package simulate

import (
	"slices"

	"github.com/devmap-dev/devmap/executor/program"
)

// makespan is when the last instruction ends.
func (sim *simulation) makespan() int64 {
	last := int64(0)
	for _, end := range sim.end {
		last = max(last, end)
	}
	return last
}

// path goes back from what ends last, always to what let it start. Of several
// that end last it is the first of the program.
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
