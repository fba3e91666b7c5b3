package program

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Report is what [Program.Check] found.
type Report struct {
	// Faults are what is wrong, in the order of the rules, then of the lines: at
	// most [FaultsPerRule] of a rule, then one that counts the others.
	Faults []Fault
	// Live are the bytes of buffers that are live at every instruction, by the
	// order of a device's lines.
	Live []int64
	// Devices are the largest of them on each.
	Devices []Usage
}

// Usage is what a device's buffers come to.
type Usage struct {
	// Live is the largest sum of live buffers, At the first instruction that
	// has it (None on a device without instructions), Idle what the arena has
	// besides.
	Live int64
	At   int32
	Idle int64
}

// FaultsPerRule is how many faults of one rule are told in full.
const FaultsPerRule = 10

// Err is nil of a sound program, else all faults, a line each.
func (report *Report) Err() error {
	if len(report.Faults) == 0 {
		return nil
	}
	lines := make([]string, len(report.Faults))
	for i, fault := range report.Faults {
		lines[i] = fault.Rule + ": " + fault.Message
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Check holds a program to the rules that the package comment states, and
// reports all faults at once.
func (program *Program) Check() *Report {
	faults := &faultList{told: make(map[string]int)}
	for _, fault := range program.dangling {
		faults.add(fault)
	}
	report := &Report{}
	report.Live, report.Devices = program.liveBytes()
	report.Faults = faults.all()
	return report
}

// faultList keeps the first faults of each rule and counts the others, so that
// a program of a million broken lines stays readable.
type faultList struct {
	kept []Fault
	told map[string]int
}

func (list *faultList) add(fault Fault) {
	list.told[fault.Rule]++
	if list.told[fault.Rule] <= FaultsPerRule {
		list.kept = append(list.kept, fault)
	}
}

func (list *faultList) all() []Fault {
	for rule, count := range list.told {
		if count > FaultsPerRule {
			list.kept = append(list.kept, Fault{
				Rule: rule, Device: None, Instr: None,
				Message: fmt.Sprintf("and %d more of this rule", count-FaultsPerRule),
			})
		}
	}
	slices.SortStableFunc(list.kept, func(a, b Fault) int {
		if byRule := ruleNumber(a.Rule) - ruleNumber(b.Rule); byRule != 0 {
			return byRule
		}
		return int(uint32(a.Instr)) - int(uint32(b.Instr)) //nolint:gosec // None behind all others
	})
	return list.kept
}

// ruleNumber orders rules: V2 before V12, names before both.
func ruleNumber(rule string) int {
	number := 0
	if _, err := fmt.Sscanf(rule, "V%d", &number); err != nil {
		return 0
	}
	return number
}
