package ask

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/executor"
)

// Devices returns the GPUs of --devices, one for each device of a plan; nil if the flag was left
// out.
func (run *Run) Devices() ([]int, error) {
	if run.devices == "" {
		return nil, nil
	}
	var gpus []int
	for text := range strings.SplitSeq(run.devices, ",") {
		gpu, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || gpu < 0 {
			return nil, out.Usagef("--devices %q: %q is no number of a GPU: want one for each device of the plan, as in --devices 0,0,1,1", run.devices, text)
		}
		gpus = append(gpus, gpu)
	}
	return gpus, nil
}

// GPUFlags returns the first given flag that applies only to GPUs; empty if there is none.
func (request *Request) GPUFlags() string {
	for _, name := range []string{"devices", "transport", "fault", "keep", "certify"} {
		if given := request.cmd.Flags().Lookup(name); moved(given) {
			if given.Value.Type() == "bool" {
				return "--" + name
			}
			return "--" + name + " " + given.Value.String()
		}
	}
	return ""
}

// Fault is a fault to inject.
type Fault struct {
	Kind string // for example oom@map; empty: none
	At   int64  // which occurrence, from 1
}

// These faults are of processes; a backend has others.
const (
	KillLoad  = "kill@load"
	KillStep  = "kill@step"
	KillSleep = "kill@sleep"
	KillWake  = "kill@wake"
)

// faults lists all kinds, and the effect of each at occurrence N.
var faults = []struct{ kind, does string }{
	{string(executor.FailMap), "memory allocation N of a plan fails"},
	{string(executor.CorruptPath), "copy path N between GPUs changes a byte"},
	{string(executor.HangStep), "a kernel of step N never ends"},
	{string(executor.LoseStep), "the last GPU is lost in step N"},
	{KillLoad, "the worker is killed at piece N of the weights"},
	{KillStep, "the worker is killed in step N"},
	{KillSleep, "the worker is killed while plan turn N goes to sleep"},
	{KillWake, "the worker is killed while plan turn N wakes up"},
}

// FaultHelp lists the kinds of --fault, one per line.
func FaultHelp() string {
	var lines []string
	for _, fault := range faults {
		lines = append(lines, fmt.Sprintf("  %-13s %s", fault.kind, fault.does))
	}
	return strings.Join(lines, "\n")
}

func faultsKnown() string {
	var known []string
	for _, fault := range faults {
		known = append(known, fmt.Sprintf("%s:N (%s)", fault.kind, fault.does))
	}
	return strings.Join(known, ", ")
}

// FaultAsked returns the fault of --fault.
func (run *Run) FaultAsked() (fault Fault, err error) {
	text := run.Fault
	if text == "" {
		return Fault{}, nil
	}
	kind, number, _ := strings.Cut(text, ":")
	fault.Kind = kind
	fault.At, err = strconv.ParseInt(number, 10, 64)
	known := slices.ContainsFunc(faults, func(one struct{ kind, does string }) bool { return one.kind == kind })
	if !known || err != nil || fault.At < 1 {
		return Fault{}, out.Usagef("--fault %q: want KIND:N, N from 1: %s", text, faultsKnown())
	}
	return fault, nil
}
