package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/devicemap"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

// setting takes workload and devices from the plan, each flag that is given
// over it; without a plan from the flags alone, on as many devices as the map
// names.
func (c *checkCommand) setting(cmd *cobra.Command, plan *devicemap.Plan, flat devicemap.Flat) (costmodel.Workload, *costmodel.Topology, error) {
	w, err := c.parse()
	if err != nil {
		return w, nil, err
	}
	count := 1
	for _, e := range flat {
		count = max(count, min(int(e.Device)+1, costmodel.MaxDevices))
	}
	if plan != nil {
		w = c.over(cmd, plan.Workload, w)
		count = len(plan.Topology.Devices)
	}
	if plan == nil || anyChanged(cmd, "gpus", "gpu", "topology") {
		topo, err := c.buildTopology(cmd.Context(), w.Mode, count)
		return w, topo, err
	}
	topo := plan.Topology
	topo.Devices = slices.Clone(topo.Devices)
	if err := c.setAside(&topo); err != nil {
		return w, nil, err
	}
	if err := topo.Check(); err != nil {
		return w, nil, out.Usagef("the GPUs of the plan: %w", err)
	}
	return w, &topo, nil
}

// over lays the flags that were given over a plan's workload.
func (c *checkCommand) over(cmd *cobra.Command, planned, flags costmodel.Workload) costmodel.Workload {
	w := planned
	for _, f := range []struct {
		name string
		take func()
	}{
		{"mode", func() { w.Mode = flags.Mode }},
		{"batch", func() { w.Batch = flags.Batch }},
		{"micro-batches", func() { w.MicroBatches = flags.MicroBatches }},
		{"seq", func() { w.Seq, w.TargetSeq = flags.Seq, 0 }}, // --target-seq is as --seq
		{"target-seq", func() { w.TargetSeq = flags.TargetSeq }},
		{"new-tokens", func() { w.NewTokens = flags.NewTokens }},
		{"precision", func() { w.Precision, w.StoredTypes = flags.Precision, false }},
		{"optimizer", func() { w.Optimizer = flags.Optimizer }},
		{"recompute", func() { w.Recompute = flags.Recompute }},
		{"images", func() { w.Images = flags.Images }},
		{"image-size", func() { w.ImageSize = flags.ImageSize }},
		// What an engine makes of adapters follows it.
		{"strategy", func() {
			w.Strategy, w.Runtime, w.LoRAPrecision = flags.Strategy, flags.Runtime, ""
			w.Schedule, w.VirtualStages, w.ShardDegree = "", 0, 0
		}},
		{"runtime", func() { w.Runtime, w.LoRAPrecision = flags.Runtime, "" }},
		{"schedule", func() { w.Schedule, w.VirtualStages = flags.Schedule, flags.VirtualStages }},
		{"virtual-stages", func() { w.VirtualStages = flags.VirtualStages }},
		{"shard-degree", func() { w.ShardDegree = flags.ShardDegree }},
		{"lora-rank", func() { w.LoRARank = flags.LoRARank }},
		{"lora-targets", func() { w.LoRATargets = flags.LoRATargets }},
		{"lora-precision", func() { w.LoRAPrecision = flags.LoRAPrecision }},
		{"quantize", func() { w.Quantize = flags.Quantize }},
		{"loss", func() { w.Loss = flags.Loss }},
		{"attention", func() { w.Attention = flags.Attention }},
		{"loss-only", func() { w.LossOnly = flags.LossOnly }},
		{"gradient-as-bucket-view", func() { w.GradientViews = flags.GradientViews }},
		{"ema", func() { w.EMA = flags.EMA }},
	} {
		if anyChanged(cmd, f.name) {
			f.take()
		}
	}
	return w
}

func anyChanged(cmd *cobra.Command, names ...string) bool {
	return slices.ContainsFunc(names, cmd.Flags().Changed)
}
