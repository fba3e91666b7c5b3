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

// orderForm is that of schedules that name their own order.
var orderForm = otherForm{
	known: "an order such as order:FB/FB", sound: "order of passes such as order:FB/FB",
	meant: func(text string) bool { return ScheduleKind(text).OwnOrder() },
	read:  func(text string) error { return second(value.OrderRows(text)) },
}

// checkRows refuses an order that does not run every micro-batch once through each chunk. It also
// refuses a pass before the one that it needs on the same rank, and rows that wait for each other.
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
	for rank, left := range schedule.stuck(rows, chunks) {
		if left != "" {
			return Refuse(Set("schedule", schedule.Kind), "row %d of the order stops before its last %d passes, at %c: the rows wait for each other in a ring", rank, len(left), left[0])
		}
	}
	return nil
}

// stuck runs the rows and returns the passes of each that never start. A forward waits for that of
// the stage before, a backward for that of the stage after.
func (schedule Schedule) stuck(rows [][]value.PassBlock, chunks int) []string {
	left, stages := make([]string, len(rows)), make([][2]int, len(rows))
	for rank, row := range rows {
		var text strings.Builder
		for _, block := range row {
			text.WriteString(strings.Repeat(block.Passes, int(block.Times)))
		}
		left[rank] = text.String()
	}
	count := 0
	for stage := range schedule.Stages * int64(chunks) {
		if rank, chunk := schedule.Place(stage); chunk == 0 || strings.Contains(left[rank], "f") {
			count++
			stages[rank][chunk] = count
		}
	}
	// The passes that have run, by stage. Nothing is before the first stage or after the last.
	forwards, backwards := make([]int64, count+2), make([]int64, count+2)
	forwards[0], backwards[count+1] = schedule.MicroBatches, schedule.MicroBatches
	for moved := true; moved; {
		moved = false
		for rank := range left {
			for ; left[rank] != ""; left[rank] = left[rank][1:] {
				letter := strings.IndexByte(value.Passes, left[rank][0])
				stage := stages[rank][letter/4]
				ran, needs := forwards, stage-1
				if letter%4 != 0 {
					ran, needs = backwards, stage+1
				}
				if letter%4 != 3 { // W needs its own I alone
					if ran[needs] <= ran[stage] {
						break
					}
					ran[stage]++
				}
				moved = true
			}
		}
	}
	return left
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
