package ask

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Contradicted refuses the flags that say another workload or other devices than
// a plan: the plan is simulated.
func (request *Request) Contradicted(plan *devicemap.Plan) error {
	if err := checkValues(request.cmd.Flags()); err != nil {
		return err
	}
	for i := range flags {
		f := &flags[i]
		if f.field == nil || !request.Given(f.name) {
			continue
		}
		given, planned := valueOf(f.field.Ref(&request.work)), valueOf(f.field.Ref(&plan.Workload))
		if f.name == "preset" && isFile(given) {
			read, err := readTrainerFile(given)
			if err != nil {
				return err
			}
			given = read.preset
		}
		if given != planned && given != string(costmodel.Auto) {
			return out.Usagef("--%s %s contradicts the plan, which is for --%s %s: leave it out, or plan again", f.name, cmp.Or(given, f.field.Default), f.name, cmp.Or(planned, f.field.Default))
		}
	}
	return request.otherDevices(plan)
}

// Idle refuses the flags of a workload, of devices and of a plan, where a program
// has all of that in it.
func (request *Request) Idle() error {
	for i := range flags {
		f := &flags[i]
		ofPlan := f.field != nil || slices.Contains([]string{"gpus", "gpu", "topology", "reserve", "model", "schedule-file"}, f.name)
		if ofPlan && request.Given(f.name) {
			return out.Usagef("--%s is for a plan: a program says all that is run, and where", f.name)
		}
	}
	return nil
}

// valueOf prints what a pointer to a field points to.
func valueOf(field any) string {
	value := reflect.ValueOf(field).Elem()
	if value.Kind() == reflect.Slice {
		texts := make([]string, value.Len())
		for i := range texts {
			texts[i] = fmt.Sprint(value.Index(i))
		}
		return strings.Join(texts, ",")
	}
	return fmt.Sprint(value)
}
