package value

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
//	order:Ff,bB*8/...            two chunks on each rank, which go round the ranks
//	v-order:...                  two chunks on each rank, in the form of a V
const (
	lineOrder = "order:"
	veeOrder  = "v-order:"
	// Passes are the letters of passes: four kinds of the first chunk, then of the second.
	Passes = "FBIWfbiw"
	// mostPasses limits the passes of a row, and of a kind's text.
	mostPasses = 1 << 22
)

// PassBlock is passes of a row of an order, which run Times times. Passes are letters.
type PassBlock struct {
	Passes string
	Times  int64
}

// OwnOrder reports that the text of a schedule names its own order, and whether that is a V.
func OwnOrder(text string) (own, vee bool) {
	vee = strings.HasPrefix(text, veeOrder)
	return vee || strings.HasPrefix(text, lineOrder), vee
}

// OrderOf returns the text that names the order of these rows, one for each rank.
func OrderOf(vee bool, rows [][]PassBlock) string {
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
	return prefix + strings.Join(texts, "/")
}

// OrderRows returns the rows of a text that names an order. The error names the row and the block
// that is not one.
func OrderRows(text string) ([][]PassBlock, error) {
	if own, _ := OwnOrder(text); !own {
		return nil, fmt.Errorf("%q names no order", text)
	}
	_, text, _ = strings.Cut(text, ":")
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
			known := letters != "" && strings.Trim(letters, Passes) == ""
			if !known || block.Times < 1 || block.Times > mostPasses {
				return nil, fmt.Errorf("row %d of the order has %q: a block is letters such as FB or fb, and *n repeats it", len(out), part)
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
