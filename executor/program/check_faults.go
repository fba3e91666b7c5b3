package program

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// faultsPerRule is the number of faults of one rule that are reported in full.
const faultsPerRule = 10

// String returns the fault in one line.
func (fault Fault) String() string {
	return fault.Rule + ": " + fault.Message
}

// faultList keeps the first faults of each rule and counts the others, so that the report of a
// million broken lines stays readable.
type faultList struct {
	first  []Fault
	counts map[string]int
}

func (list *faultList) add(fault Fault) {
	list.counts[fault.Rule]++
	if list.counts[fault.Rule] <= faultsPerRule {
		list.first = append(list.first, fault)
	}
}

// full reports whether a rule has the most faults that are reported. Further ones have no message.
func (list *faultList) full(rule string) bool {
	return list.counts[rule] >= faultsPerRule
}

func (list *faultList) all() []Fault {
	for rule, count := range list.counts {
		if count > faultsPerRule {
			list.first = append(list.first, Fault{
				Rule: rule, Device: None, Instr: None,
				Message: fmt.Sprintf("and %d more of this rule", count-faultsPerRule),
			})
		}
	}
	slices.SortStableFunc(list.first, func(a, b Fault) int {
		if byRule := ruleNumber(a.Rule) - ruleNumber(b.Rule); byRule != 0 {
			return byRule
		}
		return int(uint32(a.Instr)) - int(uint32(b.Instr))
	})
	return list.first
}

// ruleNumber orders rules: V2 before V12, and the reader's faults before both.
func ruleNumber(rule string) int {
	number, err := strconv.Atoi(strings.TrimPrefix(rule, "V"))
	if err != nil {
		return 0
	}
	return number
}

// faultAt adds a fault of an instruction. Its text has the device, the instruction, the fault and
// the correct form.
func (check *check) faultAt(rule string, instr int32, format string, args ...any) {
	message := ""
	if !check.faults.full(rule) {
		device := check.Instrs[instr].Device
		message = fmt.Sprintf("device %d, %s: ", check.Devices[device].ID, check.brief(instr)) + fmt.Sprintf(format, args...)
	}
	check.faults.add(Fault{Rule: rule, Device: check.Instrs[instr].Device, Instr: instr, Message: message})
}

// faultOn adds a fault of a device, or of no device.
func (check *check) faultOn(rule string, device int32, format string, args ...any) {
	message := ""
	if !check.faults.full(rule) {
		message = fmt.Sprintf(format, args...)
		if device >= 0 {
			message = fmt.Sprintf("device %d: ", check.Devices[device].ID) + message
		}
	}
	check.faults.add(Fault{Rule: rule, Device: device, Instr: None, Message: message})
}

// brief is an instruction without its buffers and waits, such as 1.4 forward L7 mb2.
func (check *check) brief(index int32) string {
	instr := &check.Instrs[index]
	text := check.Place(index) + " " + instr.Op.String()
	if instr.Routine >= 0 {
		text += " " + check.Routines[instr.Routine].Name
	}
	if instr.MicroBatch >= 0 {
		text += " mb" + strconv.Itoa(int(instr.MicroBatch))
	}
	if instr.Channel >= 0 {
		text += " " + check.Channels[instr.Channel].Name + "#" + strconv.Itoa(int(instr.Sequence))
	}
	return text
}

// wait returns the words of a line that waits for an instruction.
func (check *check) wait(index int32) string {
	instr := &check.Instrs[index]
	return "after " + check.Devices[instr.Device].Streams[instr.Stream] + ":" + check.Place(index)
}
