package costmodel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// mostBlocks limits the number of a recomputed block.
const mostBlocks = 1 << 20

// blockForm is that of lists of blocks.
var blockForm = otherForm{
	known: "a list of blocks such as 0-5,9", sound: "list of blocks such as 0-5,9",
	meant: func(text string) bool { return text != "" && strings.Trim(text[:1], "0123456789-, ") == "" },
	read:  func(text string) error { return second(blockRuns(text)) },
}

// Recomputed returns, for each of count blocks, whether the workload's backward runs it again: all or
// none of them, or those of a list such as 0-5,9. Blocks are units with several layers, numbered in
// the order they run. The error is a list with a block that the model does not have.
func (workload *Workload) Recomputed(count int) ([]bool, error) {
	all := workload.Recompute == RecomputeFull || workload.Recompute == value.RecomputeSelective
	return listed("recompute", workload.Recompute, all, count)
}

// Offloads returns, for each of count blocks, whether its saved activations leave for host memory
// between forward and backward: all, none, or those of a list, as of [Workload.Recomputed].
func (workload *Workload) Offloads(count int) ([]bool, error) {
	return listed("offload_activations", workload.OffloadActivations, workload.OffloadActivations == OffloadAll, count)
}

// listed returns which of count blocks a field's text lists. Any other text is for all of them, or for
// none.
func listed(field, text string, all bool, count int) ([]bool, error) {
	out := make([]bool, count)
	runs, err := blockRuns(text)
	if err != nil {
		for block := range out {
			out[block] = all
		}
		return out, nil
	}
	for _, run := range runs {
		if run.End > count {
			last := "the model has none"
			if count > 0 {
				last = fmt.Sprintf("the last is %d", count-1)
			}
			return nil, Refuse(Set(field, text), "block %d is none of the model's: %s", run.End-1, last)
		}
		for block := run.First; block < run.End; block++ {
			out[block] = true
		}
	}
	return out, nil
}

// ListsRecomputed reports that the workload recomputes some blocks, by a list.
func (workload *Workload) ListsRecomputed() bool {
	return blockForm.read(workload.Recompute) == nil
}

// RecomputeOf returns the shortest text of the recomputed blocks: none, full or a list.
func RecomputeOf(blocks []bool) string {
	if !slices.Contains(blocks, true) {
		return RecomputeNone
	}
	if !slices.Contains(blocks, false) {
		return RecomputeFull
	}
	var parts []string
	for first := 0; first < len(blocks); first++ {
		end := first
		for end < len(blocks) && blocks[end] {
			end++
		}
		switch end - first {
		case 0:
			continue
		case 1:
			parts = append(parts, strconv.Itoa(first))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", first, end-1))
		}
		first = end
	}
	return strings.Join(parts, ",")
}

var errNoBlock = errors.New("it begins with no number of a block")

// blockRuns reads a list of blocks such as 0-5,9: numbers and ranges, ascending, without repeats.
func blockRuns(text string) ([]Interval, error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return nil, errNoBlock
	}
	var out []Interval
	end := -1
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, begins := blockNumber(from)
		last, ends := blockNumber(to)
		switch {
		case !begins || !ends:
			return nil, fmt.Errorf("%q is no block and no range of blocks (no spaces, numbers from 0 to %d)", part, mostBlocks-1)
		case last < first:
			return nil, fmt.Errorf("the range %s ends before it begins", part)
		case first <= end:
			return nil, fmt.Errorf("%s follows block %d: blocks ascend, and each is named once", part, end)
		}
		end = last
		out = append(out, Interval{first, last + 1})
	}
	return out, nil
}

func blockNumber(text string) (int, bool) {
	number, err := strconv.Atoi(text)
	return number, err == nil && number >= 0 && number < mostBlocks && strconv.Itoa(number) == text
}
