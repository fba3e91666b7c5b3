package show

import (
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Certificate says whether the map fits, how good it is and what is proved.
func (printer *Printer) Certificate(solution *planner.Solution, imbalance float64) {
	said := []string{verdictText(solution.Verdict, &solution.Devices[solution.Bottleneck])}
	if what := timed(solution); what != "" {
		said = append(said, fmt.Sprintf("%s%s %s.", strings.ToUpper(what[:1]), what[1:], Seconds(solution.Value)))
	}
	said = append(said, fullestText(&solution.Devices[solution.Bottleneck]), proofText(solution), meanText(imbalance))
	printer.sentences(said)
}

// Judged prints the same for a checked map that can run. If faults leave modules without a GPU,
// there is no verdict of its memory.
func (printer *Printer) Judged(verdict devicemap.Verdict, devices []devicemap.Prediction, imbalance float64, faults int) {
	if len(devices) == 0 {
		return
	}
	if faults > 0 && verdict != doesNotFit {
		printer.sentences([]string{"Not valid: " + Plural(faults, "fault") + "."})
		return
	}
	worst := &devices[0]
	for i := range devices {
		if devices[i].Share > worst.Share {
			worst = &devices[i]
		}
	}
	printer.sentences([]string{verdictText(verdict, worst), fullestText(worst), meanText(imbalance)})
}

// sentences prints sentences as lines of the width. The verdict has a colour.
func (printer *Printer) sentences(said []string) {
	lines := joined(said, " ", "", printer.width)
	for verdict, colour := range map[devicemap.Verdict]text.Color{fits: text.FgGreen, tight: text.FgYellow, doesNotFit: text.FgRed} {
		if words := verdictText(verdict, &devicemap.Prediction{}); printer.colour && said[0] == words {
			lines = strings.Replace(lines, words, colour.Sprint(words), 1)
		}
	}
	printer.printf("%s\n", out.Block(lines))
}

func verdictText(verdict devicemap.Verdict, fullest *devicemap.Prediction) string {
	switch {
	case verdict == doesNotFit:
		return "Does not fit."
	case fullest.Predicted.AtLeast:
		return "Weights and what is counted fit: peaks are lower bounds."
	case verdict == tight:
		return "Tight: the peaks fit, the allocator's pool may not."
	}
	return "Fits."
}

func fullestText(prediction *devicemap.Prediction) string {
	return fmt.Sprintf("Fullest: GPU %d, %s%.2f%% (%s).", prediction.Device, least(&prediction.Predicted), 100*prediction.Share, sized(prediction.Predicted.PeakAllocatedBytes+prediction.Predicted.OverheadBytes, prediction.Budget))
}

// least returns the mark of a lower bound.
func least(predicted *devicemap.Predicted) string {
	if predicted.AtLeast {
		return "≥ "
	}
	return ""
}

func meanText(imbalance float64) string { return fmt.Sprintf("Max/mean %.2f.", imbalance) }

// proofText returns the status with the lower bound.
func proofText(solution *planner.Solution) string {
	if offloaded := solution.Offloaded; offloaded != nil { // the next line has the status of offloaded bytes
		return Sentence(proved(offloaded.Rest.LowerBound, offloaded.Rest.Bound, " for the units on GPUs", percent))
	}
	unit := percent
	if timed(solution) != "" {
		unit = Seconds
	}
	return Sentence(string(solution.Status) + ": " + proved(solution.LowerBound, solution.Bound, "", unit))
}

// Sentence begins words with a capital and ends them with a full stop.
func Sentence(words string) string { return strings.ToUpper(words[:1]) + words[1:] + "." }

// proved returns a lower bound with its argument. A bound of 0 is none: its search was stopped
// before it found one.
func proved(bound float64, argument, of string, unit func(float64) string) string {
	if bound <= 0 {
		return "no lower bound" + of + " was proved in the time"
	}
	return fmt.Sprintf("lower bound%s %s (%s)", of, unit(bound), argument)
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }

// timed returns the time that a solution minimizes, of a step or a request; empty: it minimizes
// none.
func timed(solution *planner.Solution) string {
	switch solution.Objective {
	case planner.Time:
		return "step"
	case planner.Latency:
		return "latency"
	case planner.Memory:
	}
	return ""
}

// Offloaded prints the offloaded bytes.
func (printer *Printer) Offloaded(solution *planner.Solution) {
	offloaded := solution.Offloaded
	if offloaded == nil {
		return
	}
	printer.sentences(travelling(Plural(offloaded.Units, "unit"), offloaded.Bytes, offloaded.FromDisk, offloaded.LowerBound, string(offloaded.Status)))
}

// travelling says which units are offloaded, what of them travels in each forward, and what is proved of it.
func travelling(units string, bytes, fromDisk, least int64, status string) []string {
	from := ""
	switch {
	case fromDisk == bytes:
		from = " from disk"
	case fromDisk > 0:
		from = " (" + costmodel.Bytes(fromDisk).String() + " of it from disk)"
	}
	return []string{
		fmt.Sprintf("Offloaded: %s. %v%s travel to the first GPU in each forward.", units, costmodel.Bytes(bytes), from),
		Sentence(fmt.Sprintf("%s: at least %v travel under any map that fits", status, costmodel.Bytes(least))),
	}
}
