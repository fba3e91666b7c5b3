package emit

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/devmap-dev/devmap/costmodel/order"
)

// writeOrder writes actions in torch's compute-only form: a row a rank, a cell an
// action, as 2F0 for stage 2's forward of micro-batch 0 (torch 2.11,
// distributed/pipelining/schedules.py, _PipelineScheduleRuntime._load_csv and
// _Action.__repr__). The rank ranks[s] runs stage s; an action's chunk is its
// stage's place among those of the rank.
func writeOrder(to io.Writer, ranks []int, actions [][]order.Action) error {
	stages := stagesOf(ranks, len(actions))
	writer := bufio.NewWriter(to)
	for rank, row := range actions {
		for i, action := range row {
			if i > 0 {
				fmt.Fprint(writer, ",")
			}
			fmt.Fprint(writer, cellText(stages[rank][action.Chunk], action))
		}
		fmt.Fprint(writer, "\n")
	}
	return writer.Flush()
}

// stagesOf are the stages of each rank, in order.
func stagesOf(ranks []int, count int) [][]int {
	out := make([][]int, count)
	for stage, rank := range ranks {
		out[rank] = append(out[rank], stage)
	}
	return out
}

func cellText(stage int, action order.Action) string {
	return strconv.Itoa(stage) + action.Kind.String() + strconv.FormatInt(action.MicroBatch, 10)
}
