package costmodel

import (
	"fmt"
	"strconv"
	"strings"
)

// A schedule may name its own order instead of a published one. Its kind is a prefix and a row of
// passes for each rank, separated by a slash. A pass is F, B, I or W of the rank's first chunk, in
// lower case of its second. The i-th of a kind and a chunk is of micro-batch i. A row lists blocks,
// separated by commas; *n after a block runs it n times:
//
//	order:FF,BF*6,BB/F,BF*7,B    1F1B of 8 micro-batches on two ranks
//	v-order:...                  two chunks on each rank, in the form of a V
const (
	lineOrder = "order:"
	veeOrder  = "v-order:"
	passes    = "FBIWfbiw"
	// mostPasses limits the passes of a row, and of a kind's text.
	mostPasses = 1 << 22
)

// PassBlock is passes of a row of a kind that names its own order. Passes are letters.
type PassBlock struct {
	Passes string
	Times  int64
}

// OwnOrder reports that a kind names its own order.
func (kind ScheduleKind) OwnOrder() bool {
	return strings.HasPrefix(string(kind), lineOrder) || strings.HasPrefix(string(kind), veeOrder)
}

// OrderOf returns the kind that names the order of these rows, one for each rank.
func OrderOf(vee bool, rows [][]PassBlock) ScheduleKind {
	texts := make([]string, len(rows))
	for rank, row := range rows {
		parts := make([]string, len(row))
		for i, block := range row {
			parts[i] = block.Passes
			if block.Times > 1 {
				parts[i] += "*" + strconv.FormatInt(block.Times, 10)
			}
		}
		texts[rank] = strings.Join(parts, ",")
	}
	prefix := lineOrder
	if vee {
		prefix = veeOrder
	}
	return ScheduleKind(prefix + strings.Join(texts, "/"))
}

// Rows returns the rows of a kind that names its own order. The error names the row and the block
// that is not one.
func (kind ScheduleKind) Rows() ([][]PassBlock, error) {
	if !kind.OwnOrder() {
		return nil, fmt.Errorf("%q names no order", string(kind))
	}
	_, text, _ := strings.Cut(string(kind), ":")
	var out [][]PassBlock
	total := int64(0)
	for row := range strings.SplitSeq(text, "/") {
		var blocks []PassBlock
		for part := range strings.SplitSeq(row, ",") {
			letters, times, repeats := strings.Cut(part, "*")
			block := PassBlock{letters, 1}
			if repeats {
				block.Times, _ = strconv.ParseInt(times, 10, 64)
			}
			known := letters != "" && strings.Trim(letters, passes) == "" && (kind.Vee() || strings.ToUpper(letters) == letters)
			if !known || block.Times < 1 || block.Times > mostPasses {
				return nil, fmt.Errorf("row %d of the order has %q: a block is letters such as FB, in a V also fb, and *n repeats it", len(out), part)
			}
			if total += int64(len(letters)) * block.Times; total > mostPasses {
				return nil, fmt.Errorf("the order has more than %d passes", mostPasses)
			}
			blocks = append(blocks, block)
		}
		out = append(out, blocks)
	}
	return out, nil
}

// ordersOwn reports a workload whose schedule names an order that can be read.
func (workload *Workload) ordersOwn() bool {
	_, err := workload.Schedule.Rows()
	return err == nil
}

// checkRows refuses an order that does not run every micro-batch once through each chunk, or that
// runs a pass before the one that it needs on the same rank.
func (schedule Schedule) checkRows() error {
	rows, err := schedule.Kind.Rows()
	if err != nil {
		return Refuse(Set("schedule", schedule.Kind), "%v", err)
	}
	if int64(len(rows)) != schedule.Stages {
		return Refuse(Set("schedule", schedule.Kind), "the order has rows of %d GPUs, and the pipeline has %d", len(rows), schedule.Stages)
	}
	chunks := 1
	if schedule.Kind.Vee() {
		chunks = 2
	}
	if int(schedule.Chunks) > chunks || schedule.Kind.Vee() && schedule.Chunks != 2 {
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
func rowFault(row []PassBlock, chunks int, batches int64) string {
	var ran [len(passes)]int64
	for _, block := range row {
		for range block.Times {
			for i := range block.Passes {
				at := strings.IndexByte(passes, block.Passes[i])
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
