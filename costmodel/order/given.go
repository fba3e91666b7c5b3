package order

import (
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// given returns the phases of a rank of a schedule that names its own order
// ([costmodel.ScheduleKind.OwnOrder]); none if it cannot be read.
func given(schedule costmodel.Schedule, rank int64) []Phase {
	rows, err := value.OrderRows(string(schedule.Kind))
	if err != nil || rank >= int64(len(rows)) {
		return nil
	}
	var next [Weight + 1][2]int64
	var out []Phase
	for _, block := range rows[rank] {
		before := next
		first := actionsOf(block.Passes, &next)
		if advance, even := evenly(before, next); even {
			out = append(out, Phase{first, block.Times, advance})
			for kind := range next {
				for chunk := range next[kind] {
					next[kind][chunk] += (block.Times - 1) * (next[kind][chunk] - before[kind][chunk])
				}
			}
			continue
		}
		for range block.Times - 1 {
			first = append(first, actionsOf(block.Passes, &next)...)
		}
		out = append(out, Phase{first, 1, 0})
	}
	return phases(out...)
}

// actionsOf returns the actions of a block's letters, which are in lower case for the second chunk.
// next are the micro-batches of the next action of each kind and chunk.
func actionsOf(passes string, next *[Weight + 1][2]int64) (out []Action) {
	for i := range passes {
		letter, chunk := passes[i], int64(0)
		if letter >= 'a' {
			letter, chunk = letter-'a'+'A', 1
		}
		kind := Kind(strings.IndexByte(letters, letter))
		out = append(out, Action{kind, chunk, next[kind][chunk]})
		next[kind][chunk]++
	}
	return out
}

// evenly returns the number of micro-batches that every kind of pass of a block advances by; false
// if they differ.
func evenly(before, after [Weight + 1][2]int64) (advance int64, even bool) {
	for kind := range after {
		for chunk := range after[kind] {
			more := after[kind][chunk] - before[kind][chunk]
			if more > 0 && advance > 0 && more != advance {
				return 0, false
			}
			advance = max(advance, more)
		}
	}
	return advance, true
}

// Given returns the kind of schedule that names an order, with a row of actions for each rank. A
// rank has one chunk, or two: in the form of a V, or round the ranks. Micro-batches of each kind of
// action are in order.
func Given(vee bool, rows [][]Action) costmodel.ScheduleKind {
	out := make([][]value.PassBlock, len(rows))
	for rank, row := range rows {
		for _, phase := range repeated(row, 6*len(rows)) {
			var text strings.Builder
			for _, action := range phase.Actions {
				letter := letters[action.Kind]
				if action.Chunk == 1 {
					letter += 'a' - 'A'
				}
				text.WriteByte(letter)
			}
			out[rank] = append(out[rank], value.PassBlock{Passes: text.String(), Times: phase.Times})
		}
	}
	return costmodel.ScheduleKind(value.OrderOf(vee, out))
}
