package strategy

import (
	"strconv"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
)

// Flags are those of `devmap plan` that ask for a workload: with the model and
// the GPUs they reproduce a row's plan. Values that are the flags' defaults
// are left out, but for the strategy and its runtime.
func Flags(w *costmodel.Workload) []string {
	out := []string{"--strategy", string(w.Strategy), "--runtime", string(w.Runtime)}
	text := func(flag, value, def string) {
		if value != "" && value != def {
			out = append(out, "--"+flag, value)
		}
	}
	number := func(flag string, value, def int64) {
		if value != def {
			out = append(out, "--"+flag, strconv.FormatInt(value, 10))
		}
	}
	on := func(flag string, value bool) {
		if value {
			out = append(out, "--"+flag)
		}
	}
	text("schedule", string(w.Schedule), "")
	number("virtual-stages", w.VirtualStages, 0)
	number("shard-degree", w.ShardDegree, 0)
	text("mode", string(w.Mode), string(costmodel.Infer))
	number("batch", w.Batch, 1)
	number("micro-batches", max(1, w.MicroBatches), 1)
	number("seq", w.Seq, 0)
	if w.TargetSeq != w.Seq {
		number("target-seq", w.TargetSeq, 0)
	}
	number("new-tokens", w.NewTokens, 0)
	number("images", w.Images, 0)
	if !w.StoredTypes {
		text("precision", string(w.Precision), "")
	}
	text("optimizer", string(w.Optimizer), string(costmodel.AdamW))
	text("recompute", string(w.Recompute), string(costmodel.RecomputeNone))
	number("lora-rank", w.LoRARank, 0)
	text("lora-targets", strings.Join(w.LoRATargets, ","), "")
	text("quantize", string(w.Quantize), "")
	text("loss", string(w.Loss), string(costmodel.LossEager))
	text("attention", string(w.Attention), string(costmodel.SDPA))
	on("loss-only", w.LossOnly)
	on("gradient-as-bucket-view", w.GradientViews)
	on("ema", w.EMA)
	return out
}
