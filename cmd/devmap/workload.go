package main

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// parse is the workload that the flags ask for.
func (s *shared) parse() (costmodel.Workload, error) {
	w := costmodel.Workload{
		Mode: costmodel.Mode(s.mode), Strategy: costmodel.Strategy(s.strategy), Runtime: costmodel.Runtime(s.runtime),
		Batch: s.batch, MicroBatches: s.microBatches, Seq: s.seq, TargetSeq: s.targetSeq, NewTokens: s.newTokens,
		Images: s.images, ImageSize: s.imageSize, Optimizer: costmodel.Optimizer(s.optimizer), Recompute: costmodel.Recompute(s.recompute),
		Schedule: costmodel.ScheduleKind(s.schedule), VirtualStages: s.virtualStages, ShardDegree: s.shardDegree,
		LoRARank: s.loraRank, LoRATargets: s.loraTargets, LoRAPrecision: costmodel.AdapterPrecision(s.loraPrecision),
		LossOnly: s.lossOnly, GradientViews: s.views, EMA: s.ema,
	}
	if s.loss != string(costmodel.LossEager) {
		w.Loss = costmodel.Loss(s.loss)
	}
	if s.attention != string(costmodel.SDPA) {
		w.Attention = costmodel.AttentionKernel(s.attention)
	}
	if s.quantize != "off" {
		w.Quantize = costmodel.Quantize(s.quantize)
	}
	for _, v := range []struct {
		flag string
		n    int64
	}{{"batch", s.batch}, {"micro-batches", s.microBatches}} {
		if v.n < 1 {
			return w, out.Usagef("--%s %d: it must be 1 or more", v.flag, v.n)
		}
	}
	if s.precision != "" {
		w.Precision = costmodel.Precision(s.precision)
	}
	return w, nil
}

// constraints reads pins and together-groups.
func (s *shared) constraints(p *planner.Problem) error {
	for _, v := range s.pins {
		layer, device, ok := strings.Cut(v, "=")
		d, err := strconv.Atoi(device)
		if !ok || layer == "" || err != nil {
			return out.Usagef("--pin %q is not LAYER=DEVICE with a device index", v)
		}
		p.Pins = append(p.Pins, planner.Pin{Pattern: layer, Device: d})
	}
	for _, v := range s.together {
		names := strings.Split(v, ",")
		if len(names) < 2 {
			return out.Usagef("--together %q names one layer: it takes A,B", v)
		}
		p.Together = append(p.Together, names)
	}
	return nil
}

// world is the number of GPUs that work together, 0 under a device map, where
// one process owns them all.
func world(s costmodel.Strategy, topo *costmodel.Topology) int64 {
	if s.Traits().Sequential {
		return 0
	}
	return int64(len(topo.Devices))
}
