package show

import (
	"fmt"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/report"
)

// activity is one use of a device's time.
type activity struct {
	heading string
	of      func(*report.DeviceTime) float64
}

var activities = []activity{
	{"forward", func(times *report.DeviceTime) float64 { return times.Forward }},
	{"backward", func(times *report.DeviceTime) float64 { return times.Backward }},
	{"decode", func(times *report.DeviceTime) float64 { return times.Decode }},
	{"update", func(times *report.DeviceTime) float64 { return times.Update }},
	{"waits", func(times *report.DeviceTime) float64 { return times.Wait }},
}

// times returns each GPU's time by activity: in the first step, with cold caches, and the average
// of the later ones.
func (rows *runTables) times() string {
	var shown []activity
	for _, does := range activities {
		if does.heading == "waits" || rows.total(does.of) > 0 {
			shown = append(shown, does)
		}
	}
	headings := []string{rows.part(), "step"}
	for _, does := range shown {
		headings = append(headings, does.heading)
	}
	table := texttab.New(headings...)
	table.Right(0)
	for column := range shown {
		table.Right(column + 2)
	}
	for device := range rows.Steps[0].Devices {
		if rows.idle(rows.Steps[0].Devices[device].Device) {
			continue
		}
		table.Row(rows.timesOf(rows.Steps[:1], device, "first", shown)...)
		if others := rows.Steps[1:]; len(others) > 0 {
			name := "others, each"
			if len(others) == 1 {
				name = "second"
			}
			table.Row(rows.timesOf(others, device, name, shown)...)
		}
	}
	return "\n" + table.String() + "\n"
}

// timesOf returns the row of a device: averages over steps.
func (rows *runTables) timesOf(steps []report.Step, device int, name string, shown []activity) []any {
	cells := []any{steps[0].Devices[device].Device, name}
	for _, does := range shown {
		sum := 0.0
		for i := range steps {
			sum += does.of(&steps[i].Devices[device])
		}
		cells = append(cells, brief(sum/float64(len(steps))))
	}
	return cells
}

// brief returns a time. It prints 0 below a microsecond, the precision of the clocks.
func brief(seconds float64) string {
	if seconds < 1e-6 {
		return "0 ms"
	}
	return Seconds(seconds)
}

func (rows *runTables) total(of func(*report.DeviceTime) float64) float64 {
	sum := 0.0
	for i := range rows.Steps {
		for j := range rows.Steps[i].Devices {
			sum += of(&rows.Steps[i].Devices[j])
		}
	}
	return sum
}

// Limits of the generated tokens on screen; --json has all.
const shownSequences, shownTokens = 8, 64

func (rows *runTables) generated() string {
	if len(rows.Tokens) == 0 {
		return ""
	}
	var lines strings.Builder
	lines.WriteString("\n")
	for i, ids := range rows.Tokens {
		if i == shownSequences {
			fmt.Fprintf(&lines, "… and %s (--json has all)\n", Plural(len(rows.Tokens)-i, "sequence"))
			break
		}
		fmt.Fprintf(&lines, "sequence %d:", i)
		for _, id := range ids[:min(shownTokens, len(ids))] {
			fmt.Fprintf(&lines, " %d", id)
		}
		if more := len(ids) - shownTokens; more > 0 {
			fmt.Fprintf(&lines, " … and %d more", more)
		}
		lines.WriteString("\n")
	}
	return lines.String() + "\n"
}

// speed returns the measured speed, compared with the plan's on GPUs. A processor's speed has no
// comparison.
func (rows *runTables) speed() string {
	said := fmt.Sprintf("%.4g tokens/s; ", *rows.TokensPerSecond)
	if rows.FirstTokenSeconds > 0 {
		said += fmt.Sprintf("the first token took %s; ", Seconds(rows.FirstTokenSeconds))
	}
	said += "a step took " + Seconds(*rows.StepSeconds.Measured)
	const several = 2
	if len(rows.Steps) > several {
		said += ", the median of those behind the first"
	}
	switch planned := rows.StepSeconds.Predicted; {
	case planned == nil:
	case len(rows.GPUs) > 0 && *planned > 0:
		turns := ""
		if rows.shared() {
			turns = " for devices that share a GPU"
		}
		said += fmt.Sprintf(" (%s predicted%s: %+.1f %%)", Seconds(*planned), turns, 100*(*rows.StepSeconds.Measured / *planned - 1))
	default:
		said += fmt.Sprintf(" (%s predicted for the plan's GPUs: not judged)", Seconds(*planned))
	}
	return said
}
