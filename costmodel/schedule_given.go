package costmodel

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// OwnOrder reports that a kind names its own order ([value.OrderOf]).
func (kind ScheduleKind) OwnOrder() bool {
	own, _ := value.OwnOrder(string(kind))
	return own
}

// ordersOwn reports a workload whose schedule names an order that can be read.
func (workload *Workload) ordersOwn() bool {
	_, err := value.OrderRows(string(workload.Schedule))
	return err == nil
}

// checkRows refuses an order that does not run every micro-batch once through each chunk. It also
// refuses a pass before the one that it needs on the same rank.
func (schedule Schedule) checkRows() error {
	rows, err := value.OrderRows(string(schedule.Kind))
	if err != nil {
		return Refuse(Set("schedule", schedule.Kind), "%v", err)
	}
	if int64(len(rows)) != schedule.Stages {
		return Refuse(Set("schedule", schedule.Kind), "the order has rows of %d GPUs, and the pipeline has %d", len(rows), schedule.Stages)
	}
	chunks := 1
	if schedule.Kind.Chunked() {
		chunks = 2
	}
	if int(schedule.Chunks) > chunks || schedule.Kind.Chunked() && schedule.Chunks != 2 {
		return Refuse(Set("virtual_stages", schedule.Chunks), "the order has %d stages on each GPU, not %d", chunks, schedule.Chunks)
	}
	for rank, row := range rows {
		if fault := rowFault(row, chunks, schedule.MicroBatches); fault != "" {
			return Refuse(Set("schedule", schedule.Kind), "row %d of the order %s", rank, fault)
		}
	}
	return nil
}

// rowFault returns what is wrong with a row.
func rowFault(row []value.PassBlock, chunks int, batches int64) string {
	var ran [len(value.Passes)]int64
	for _, block := range row {
		for range block.Times {
			for i := range block.Passes {
				at := strings.IndexByte(value.Passes, block.Passes[i])
				ran[at]++
				switch chunk := ran[at/4*4:]; {
				case chunk[1]+chunk[2] > chunk[0]:
					return fmt.Sprintf("has %c of micro-batch %d before its forward", block.Passes[i], ran[at]-1)
				case chunk[3] > chunk[2]:
					return fmt.Sprintf("has %c of micro-batch %d before its I", block.Passes[i], ran[at]-1)
				case chunk[1] > 0 && chunk[2] > 0:
					return "has backwards, and others in two parts (B, and I with W)"
				}
			}
		}
	}
	for first := 0; first < 4*chunks; first += 4 {
		chunk := ran[first : first+4]
		if first > 0 && chunk[0] == 0 {
			continue // the last rank of a V may have both as one
		}
		if back := chunk[1] + chunk[3]; chunk[0] != batches || chunk[1]+chunk[2] != batches || back != batches {
			return fmt.Sprintf("has %d F, %d B, %d I and %d W of chunk %d, and there are %d micro-batches", chunk[0], chunk[1], chunk[2], chunk[3], first/4, batches)
		}
	}
	return ""
}
