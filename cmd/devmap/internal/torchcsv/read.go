// Package torchcsv reads the actions of each rank of a pipeline from a file in torch's form (torch
// 2.11, distributed/pipelining/schedules.py). They replace devmap's order.
package torchcsv

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel/order"
)

// FaultsError is a well-formed schedule that breaks rules.
type FaultsError struct {
	File   string
	Faults []string // one line each, the row and cell first
}

// Error implements error: a line for each fault.
func (err *FaultsError) Error() string {
	return err.File + ": " + strings.Join(err.Faults, "\n"+err.File+": ")
}

// Read reads actions in torch's compute-only form, as planner/emit and torch's _dump_csv write it,
// with empty cells if a rank waits. It checks them against a pipeline: rank ranks[s] runs stage s
// once for every micro-batch, forward and in training backward. The result replaces [order.Engine].
//
// Older versions of torch wrote B for the input's half of a backward and BW for the whole; newer
// ones write I and B. A file with a BW is of the older kind. Other actions of torch are errors. If
// rules are broken, the error is a [FaultsError] with all faults.
func Read(file string, data []byte, ranks []int, microBatches int64, train bool) ([][]order.Action, error) {
	rows := splitRows(string(data))
	old := false
	for _, row := range rows {
		for _, cell := range row {
			old = old || strings.Contains(cell, "BW")
		}
	}
	schedule := newCSVSchedule(ranks, microBatches, train)
	for rank, row := range rows {
		for i, cell := range row {
			if cell == "" {
				continue
			}
			parsed, err := parseCell(cell, old)
			if err != nil {
				return nil, fmt.Errorf("%s: row %d, cell %d: %w", file, rank+1, i+1, err)
			}
			parsed.rank, parsed.column, parsed.text = rank, i, cell
			schedule.add(parsed)
		}
	}
	schedule.complete(len(rows))
	if len(schedule.faults) > 0 {
		return nil, &FaultsError{file, schedule.faults}
	}
	return schedule.actions, nil
}

// splitRows splits a file into cells without the spaces and quotes around them. Empty lines are
// rows, except at the end.
func splitRows(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(strings.TrimRight(text, " \t\r\n")) {
		cells := strings.Split(line, ",")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(strings.Trim(strings.TrimSpace(cell), `"`))
		}
		rows = append(rows, cells)
	}
	return rows
}

// cell is the content of one cell, and its place.
type cell struct {
	rank, column      int
	stage, microBatch int64
	kind              order.Kind
	text              string
}

// place names a cell as a spreadsheet counts: from 1.
func (at *cell) place() string {
	return fmt.Sprintf("row %d, cell %d: %q", at.rank+1, at.column+1, at.text)
}

// others describes torch's other actions.
var others = map[string]string{
	"UNSHARD":     "gathers FSDP's parameters",
	"RESHARD":     "drops FSDP's parameters",
	"REDUCE_GRAD": "reduces gradients of replicas",
	"SEND_F":      "communication",
	"RECV_F":      "communication",
	"SEND_B":      "communication",
	"RECV_B":      "communication",
	"OVERLAP_F_B": "a forward and a backward at once",
}

// kinds are the actions that devmap runs, by torch's letters.
var kinds = map[string]order.Kind{"F": order.Forward, "B": order.Backward, "I": order.Input, "W": order.Weight}

// parseCell reads STAGE KIND MICROBATCH, to the last letter. torch's own expression stops at the
// first unknown letter, and reads an older 0BW1 as the backward of no micro-batch.
func parseCell(text string, old bool) (cell, error) {
	if _, kind, ok := strings.Cut(text, ")"); ok && strings.HasPrefix(text, "(") {
		return cell{}, otherAction(text, kind)
	}
	stage := strings.TrimLeft(text, "0123456789")
	kind := strings.TrimRight(stage, "0123456789")
	microBatch := stage[len(kind):]
	switch {
	case len(stage) == len(text):
		return cell{}, errors.New(badCell(text))
	case old && kind == "B":
		kind = "I"
	case kind == "BW":
		kind = "B"
	}
	known, runs := kinds[kind]
	if !runs {
		return cell{}, otherAction(text, kind)
	}
	out := cell{kind: known}
	var err error
	if out.stage, err = strconv.ParseInt(text[:len(text)-len(stage)], 10, 32); err == nil {
		out.microBatch, err = strconv.ParseInt(microBatch, 10, 32)
	}
	if err != nil {
		return cell{}, errors.New(badCell(text))
	}
	return out, nil
}

func otherAction(text, kind string) error {
	if what, known := others[kind]; known {
		return fmt.Errorf("%s: %s (%s) is not supported: a file has F, B, I and W alone, and devmap adds the rest", shortened(text), kind, what)
	}
	return errors.New(badCell(text))
}

func badCell(text string) string {
	return shortened(text) + ": want STAGE, F, B, I or W, MICROBATCH, as in 2F0"
}

// shortened returns a cell in quotes, or its start if it is long.
func shortened(text string) string {
	const most = 40
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}
