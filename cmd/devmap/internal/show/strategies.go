package show

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Strategies prints a row per strategy and runtime, the best first, and why the
// others have none. It is a result: what cannot be written is an error.
func (printer *Printer) Strategies(rows []strategy.Row) error {
	var whole strings.Builder
	text := *printer
	text.to = &whole
	answered := slices.DeleteFunc(slices.Clone(rows), func(row strategy.Row) bool { return row.Refused != nil })
	if len(answered) > 0 {
		text.work = answered[0].Resolved
		text.work.MicroBatches = 1 // each row has its own
		text.work.Precision = usual(answered)
		text.printf("%s, %s (GiB)\n%s\n", out.Cell(text.graph.Name), text.doing(), out.Block(strategyTable(answered, text.work.Precision)))
	}
	for _, line := range folded(refusals(rows), ", ") {
		text.printf("%s: %s\n", line[0], line[1])
	}
	_, err := io.WriteString(printer.to, whole.String())
	return err
}

// refusals are the rows without an answer: who, and why.
func refusals(rows []strategy.Row) [][]string {
	var lines [][]string
	for i := range rows {
		if row := &rows[i]; row.Refused != nil {
			lines = append(lines, []string{fmt.Sprintf("%s (%s)", Described(&row.Workload), row.Workload.Runtime), ask.ErrorText(row.Refused)})
		}
	}
	return lines
}

// folded joins rows that differ in their first cell alone.
func folded(rows [][]string, between string) [][]string {
	var joined [][]string
	for _, row := range rows {
		i := slices.IndexFunc(joined, func(like []string) bool { return slices.Equal(like[1:], row[1:]) })
		if i < 0 {
			joined = append(joined, slices.Clone(row))
			continue
		}
		joined[i][0] += between + row[0]
	}
	return joined
}

// usual is the precision of most rows: DeepSpeed's default is one of its own.
func usual(rows []strategy.Row) costmodel.Precision {
	count := make(map[costmodel.Precision]int)
	best := rows[0].Resolved.Precision
	for i := range rows {
		precision := rows[i].Resolved.Precision
		count[precision]++
		if count[precision] > count[best] {
			best = precision
		}
	}
	return best
}

func strategyTable(rows []strategy.Row, usual costmodel.Precision) string {
	table := texttab.New("strategy", "runtime", "fits", "largest\npeak", "peak of each GPU", "head-\nroom", "sent\na step", "step", "tokens\na step")
	table.Right(3, 5, 6, 7, 8)
	for _, cells := range merged(rows, usual) {
		row := make([]any, len(cells))
		for i, cell := range cells {
			row[i] = cell
		}
		table.Row(row...)
	}
	return table.String()
}

// merged are the cells of the rows, with the precision of those that have
// another than usual. Those with the same figures share a line: strategies of
// one runtime, and runtimes of one strategy.
func merged(rows []strategy.Row, usual costmodel.Precision) [][]string {
	const strategies, runtimes = 0, 1
	var cells [][]string
	for i := range rows {
		row := strategyRow(&rows[i])
		if precision := rows[i].Resolved.Precision; precision != usual {
			row[runtimes] += ", " + string(precision)
		}
		cells = append(cells, row)
	}
	cells = folded(cells, " / ")
	for _, row := range cells { // the cell that is folded stands first
		row[strategies], row[runtimes] = row[runtimes], row[strategies]
	}
	cells = folded(cells, " / ")
	for _, row := range cells {
		row[strategies], row[runtimes] = row[runtimes], row[strategies]
	}
	return cells
}

func strategyRow(row *strategy.Row) []string {
	fits, step := "no", "–"
	if row.Fits {
		fits = "yes"
	}
	if row.StepSeconds != nil {
		step = Seconds(*row.StepSeconds)
	}
	peaks := Peaks(row)
	return []string{
		Described(&row.Resolved), row.Resolved.Runtime, fits, gib(slices.Max(peaks)), runLengths(peaks),
		gib(row.Headroom), gib(row.Communication), step, strconv.FormatInt(row.Tokens, 10),
	}
}

// Peaks are the allocated peaks of a row's GPUs, in bytes.
func Peaks(row *strategy.Row) []int64 {
	peaks := make([]int64, len(row.Solution.Devices))
	for device := range peaks {
		peaks[device] = row.Solution.Devices[device].Predicted.PeakAllocatedBytes
	}
	return peaks
}

// runLengths prints like neighbours once: 4 × 72.97, or 17.2 12.4 13.3.
func runLengths(bytes []int64) string {
	var parts []string
	for i := 0; i < len(bytes); {
		end := i + 1
		for end < len(bytes) && gib(bytes[end]) == gib(bytes[i]) {
			end++
		}
		if end > i+1 {
			parts = append(parts, fmt.Sprintf("%d × %s", end-i, gib(bytes[i])))
		} else {
			parts = append(parts, gib(bytes[i]))
		}
		i = end
	}
	const most = 8
	if len(parts) > most {
		parts = append(parts[:most], "…")
	}
	return strings.Join(parts, " ")
}
