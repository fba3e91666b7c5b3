package main

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"
)

// parse is the workload that the flags ask for.
func (s *shared) parse() (costmodel.Workload, error) {
	w := costmodel.Workload{
		Mode: costmodel.Mode(s.mode), Strategy: costmodel.DeviceMap, Runtime: costmodel.Accelerate,
		Batch: s.batch, MicroBatches: s.microBatches, Seq: s.seq, TargetSeq: s.targetSeq, NewTokens: s.newTokens,
		Optimizer: costmodel.Optimizer(s.optimizer), Recompute: costmodel.Recompute(s.recompute),
	}
	for _, v := range []struct {
		flag string
		n    int64
	}{{"batch", s.batch}, {"micro-batches", s.microBatches}} {
		if v.n < 1 {
			return w, usagef("--%s %d: it must be 1 or more", v.flag, v.n)
		}
	}
	if s.precision != "" {
		p, err := costmodel.ParsePrecision(s.precision)
		if err != nil {
			return w, usageError{err}
		}
		w.Precision = p
	}
	return w, nil
}

// constraints reads pins and together-groups.
func (s *shared) constraints(p *planner.Problem) error {
	for _, v := range s.pins {
		layer, device, ok := strings.Cut(v, "=")
		d, err := strconv.Atoi(device)
		if !ok || layer == "" || err != nil {
			return usagef("--pin %q is not LAYER=DEVICE with a device index", v)
		}
		p.Pins = append(p.Pins, planner.Pin{Pattern: layer, Device: d})
	}
	for _, v := range s.together {
		names := strings.Split(v, ",")
		if len(names) < 2 {
			return usagef("--together %q names one layer: it takes A,B", v)
		}
		p.Together = append(p.Together, names)
	}
	return nil
}
