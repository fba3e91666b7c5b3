package show

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	width "github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/ask"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
	"github.com/devmap-dev/devmap/planner/strategy"
)

// Strategies prints a row per strategy and runtime, the best first, the reasons for missing rows,
// and the command for the best. The table is a result: a write error is returned.
func (printer *Printer) Strategies(rows []strategy.Row, title *Title) error {
	var whole strings.Builder
	text := *printer
	text.to = &whole
	answered := slices.DeleteFunc(slices.Clone(rows), func(row strategy.Row) bool { return row.Refused != nil })
	if len(answered) > 0 {
		text.work = answered[0].Resolved
		text.work.Strategy, text.work.Runtime = costmodel.Auto, "" // each row has its own
		text.work.Batch, text.work.MicroBatches = title.Batch, 1
		text.work.Precision = Usual(answered)
		parts := []string{out.Cell(text.graph.Name), text.doing(), gpusOf(title.Topology)}
		if answered[0].Fits && answered[0].StepSeconds != nil {
			parts = append(parts, "fastest first")
		}
		text.title(parts, title.Defaults)
		table, lost := strategyTable(answered, &text.work, text.width)
		text.printf("%s\n", out.Block(table))
		if line := leftOut(lost); line != "" {
			text.printf("%s\n", line)
		}
	}
	for _, line := range folded(refusals(rows), ", ") {
		reason := line[0] + ": " + line[1]
		if out.Terminal(printer.to) {
			reason = hanging(reason, out.Width(printer.to))
		}
		text.printf("%s\n", out.Block(reason))
	}
	if title.Next != "" {
		text.printf("Next: %s\n", out.OneLine(title.Next))
	}
	_, err := io.WriteString(printer.to, whole.String())
	return err
}

// Title has the common properties of a table's rows.
type Title struct {
	Batch    int64 // of all GPUs together
	Topology *costmodel.Topology
	Defaults []string
	// Next is the command that plans the best row; empty if nothing fits.
	Next string
}

// refusals lists the refused rows with their reasons.
func refusals(rows []strategy.Row) [][]string {
	var lines [][]string
	for i := range rows {
		if row := &rows[i]; row.Refused != nil {
			lines = append(lines, []string{fmt.Sprintf("%s (%s)", rowName(row, &row.Workload), row.Workload.Runtime), ask.ErrorText(row.Refused)})
		}
	}
	return lines
}

// rowName returns a row's strategy with its schedule, or the name of the user's own map.
func rowName(row *strategy.Row, workload *costmodel.Workload) string {
	if row.Current {
		return "accelerate auto (what you have now)"
	}
	return Described(workload)
}

// folded joins rows that differ only in their first cell.
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

// Usual returns the precision of most rows: DeepSpeed has its own default.
func Usual(rows []strategy.Row) costmodel.Precision {
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

func strategyTable(rows []strategy.Row, work *costmodel.Workload, columns int) (table string, lost []string) {
	step, rate := "Tok/step", "Tok/s"
	if rows[0].Samples > 0 {
		step, rate = "Samples", "Samples/s"
	}
	made := &sheet{
		headings: []string{"Strategy", "Engine", "Fits", "Peak GiB", "Free", "Step", step, rate},
		left:     []string{"Strategy", "Engine", "Fits"}, spare: []string{step, "Free"}, compact: true,
	}
	const timeless = 5 // number of columns that do not depend on a step
	if work.Mode == costmodel.Load {
		made.headings = made.headings[:timeless]
	}
	const least = len("accelerate auto (what you have now)") // no row's name breaks below it
	widest := 0
	for _, cells := range merged(rows, work.Precision) {
		widest = max(widest, width.StringWidth(cells[0]))
		row := make([]any, len(made.headings))
		for i := range row {
			row[i] = cells[i]
		}
		made.rows = append(made.rows, row)
	}
	return made.fitting(columns, func(table *texttab.Table) {
		over := table.Width() - columns
		if over <= 0 {
			return
		}
		first := max(min(widest, least), widest-over)
		table.Wrap(0, first)
		if over -= widest - first; over > 0 {
			table.Wrap(1, max(len("lightning"), len("torch / lightning")-over)) // the longest
		}
	})
}

// merged returns the cells of the rows. Rows with the same figures share a line: strategies of one
// runtime, and runtimes of one strategy. A row's own batch per GPU and precision follow its
// strategy.
func merged(rows []strategy.Row, usual costmodel.Precision) [][]string {
	const strategies, engines, own = 0, 1, 2
	var cells [][]string
	for i := range rows {
		cells = append(cells, strategyRow(&rows[i], usual))
	}
	swap := func() { // the cell to fold must be first
		for _, row := range cells {
			row[strategies], row[engines] = row[engines], row[strategies]
		}
	}
	cells = folded(cells, " / ")
	swap()
	cells = folded(cells, " / ")
	swap()
	for i, row := range cells {
		row[strategies] += row[own]
		cells[i] = slices.Delete(row, own, own+1)
	}
	return cells
}

// strategyRow returns the cells of a row, with its own settings in the third.
func strategyRow(row *strategy.Row, usual costmodel.Precision) []string {
	work := &row.Resolved
	own := ""
	if work.Strategy.Traits().Replicated && work.Mode != costmodel.Load && (work.Runtime != "jax" || work.Mode != costmodel.Infer) {
		own += fmt.Sprintf(", batch %d per GPU", work.Batch)
	}
	if work.Precision != usual {
		own += ", " + string(work.Precision)
	}
	fits := string(row.Solution.Verdict)
	bound := ""
	for i := range row.Solution.Devices { // a device without units has no bound
		bound = cmp.Or(bound, least(&row.Solution.Devices[i].Predicted))
	}
	switch {
	case row.Fits && (bound != "" || row.Solution.Costs != nil && devicemap.Missing(row.Solution.Costs.Band, row.Solution.Devices) != nil):
		fits = "maybe"
	case fits == "fits":
		fits = "yes"
	}
	step, rate := "–", "–"
	if row.StepSeconds != nil {
		step = Seconds(*row.StepSeconds)
		if row.Fits {
			rate = perSecond(row)
		}
	}
	return []string{rowName(row, work), work.Runtime, own, fits, bound + peakCell(row), gib(row.Headroom), step, strconv.FormatInt(cmp.Or(row.Samples, row.Tokens), 10), rate}
}

// perSecond returns the rate of all GPUs together.
func perSecond(row *strategy.Row) string {
	rate := 1 / row.SecondsPerToken
	if row.Samples > 0 {
		rate *= float64(row.Samples) / float64(row.Tokens)
	}
	if rate < 10 {
		return strconv.FormatFloat(rate, 'g', 2, 64)
	}
	return strconv.FormatFloat(rate, 'f', 0, 64)
}

// peakCell returns the highest peak, or its range if compilation leaves it open.
func peakCell(row *strategy.Row) string {
	var low, high int64
	for device := range row.Solution.Devices {
		if ends := row.Solution.Devices[device].Predicted.PeakRangeBytes; row.Resolved.Compile && len(ends) == 2 && ends[1] > high {
			low, high = ends[0], ends[1]
		}
	}
	if gib(low) != gib(high) {
		return gib(low) + "–" + gib(high)
	}
	return gib(slices.Max(Peaks(row)))
}

// Peaks returns the allocated peaks of a row's GPUs, in bytes.
func Peaks(row *strategy.Row) []int64 {
	peaks := make([]int64, len(row.Solution.Devices))
	for device := range peaks {
		peaks[device] = row.Solution.Devices[device].Predicted.PeakAllocatedBytes
	}
	return peaks
}
