package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// estimate checks a table, and plans with the flags of its rows.
func (s *sweep) estimate() {
	s.flags = slices.DeleteFunc(s.flags, func(f setting) bool {
		return f.name == "offload" || f == setting{"objective", "front"}
	})
	args := slices.Concat([]string{"estimate", s.model.name, "--json"}, words(s.flags))
	status, document, errs := s.call(args, out.ExitDone, out.ExitUsage, out.ExitInfeasible)
	if status == out.ExitUsage {
		s.refusal(args, errs)
		return
	}
	var doc contractEstimate
	if err := json.Unmarshal(document, &doc); err != nil {
		s.fault(args, err)
		return
	}
	fits := slices.ContainsFunc(doc.Rows, func(r contractRow) bool { return r.Fits })
	if fits != (status == out.ExitDone) {
		s.fault(args, fmt.Errorf("exit status %d, and rows that fit: %v", status, fits))
	}
	for i := range doc.Rows {
		if s.chance(0.3) {
			s.fault(args, s.row(&doc.Rows[i]))
		}
	}
	if s.chance(0.2) {
		s.call(slices.Concat([]string{"estimate", s.model.name}, words(s.flags)), status)
	}
	s.hints("estimate", args, remedies(errs))
}

// row plans with the flags of a row.
func (s *sweep) row(r *contractRow) error {
	s.seen["rows"]++
	want := out.ExitDone
	if !r.Fits {
		want = out.ExitInfeasible
	}
	again := slices.Concat([]string{"plan", s.model.name, "--json"}, r.Flags)
	status, out, _ := s.call(again, want)
	if status != want || !r.Fits {
		return nil // the call has reported it
	}
	p, err := readPlan(out)
	if err != nil {
		return err
	}
	if slices.Contains(r.Flags, "--contiguous=false") || slices.Contains(r.Flags, "time") && p.Objective.Status != "optimal" {
		return nil // its time limit ends this search
	}
	var peaks []int64
	least := p.Devices[0].HeadroomBytes
	for i := range p.Devices {
		peaks = append(peaks, p.Devices[i].Predicted.PeakAllocatedBytes)
		least = min(least, p.Devices[i].HeadroomBytes)
	}
	if !slices.Equal(peaks, r.PeakAllocatedBytes) || least != r.HeadroomBytes || !reflect.DeepEqual(p.StepSeconds, r.StepSeconds) {
		return fmt.Errorf("the row %v has peaks of %d, %d left and a step of %v; devmap %s has %d, %d and %v",
			r.Flags, r.PeakAllocatedBytes, r.HeadroomBytes, deref(r.StepSeconds), shellWords(again), peaks, least, deref(p.StepSeconds))
	}
	return nil
}

func deref(f *float64) any {
	if f == nil {
		return nil
	}
	return *f
}

// These match the proposals of a usage error: "(2 and 4 do)", "(--batch 4 --micro-batches 4 do)".
var (
	offered = regexp.MustCompile(`--(micro-batches|shard-degree): .*\((\d+)(?: and (\d+))? (?:do|does|works?)\)$`)
	inFlags = regexp.MustCompile(`\((--batch \d+ --micro-batches \d+) do\)$`)
)

// refusal tries the proposals of a usage error: none may be refused for the same flag again.
func (s *sweep) refusal(args []string, errs string) {
	errs = strings.TrimSpace(errs)
	flag, hints := "micro-batches", []string{}
	if m := offered.FindStringSubmatch(errs); m != nil {
		flag = m[1]
		for _, n := range m[2:] {
			if n != "" {
				hints = append(hints, "--"+flag+" "+n)
			}
		}
	} else if m := inFlags.FindStringSubmatch(errs); m != nil {
		hints = append(hints, m[1])
	}
	for _, h := range hints {
		s.seen["numbers"]++
		again, err := follow(s.flags, hint{flags: h})
		if err != nil {
			s.fault(args, err)
			continue
		}
		status, _, text := s.call(slices.Concat(args[:2], again), out.ExitDone, out.ExitUsage, out.ExitInfeasible)
		if status == out.ExitUsage && regexp.MustCompile(`--`+flag+`\b`).MatchString(text) {
			s.fault(args, fmt.Errorf("it offers %s, which is refused: %s", h, text))
		}
	}
}
