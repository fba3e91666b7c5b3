package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// TestDevmapRefuses: the error for a missing kernel names the field and an alternative.
func TestDevmapRefuses(t *testing.T) {
	for _, c := range []struct {
		field, works string
		change       func(*costmodel.Workload)
	}{
		{"precision", "precision=bf16-true works", func(w *costmodel.Workload) { w.Precision = costmodel.FP16True }},
		{"precision", "precision=bf16-true works", func(w *costmodel.Workload) { w.Precision = costmodel.FP16Mixed }},
		{"quantize", "quantize=off works", func(w *costmodel.Workload) { w.Quantize = value.NF4 }},
		{"lora_rank", "lora_rank=0 works", func(w *costmodel.Workload) { w.LoRARank = 8 }},
		{"images", "images=0 works", func(w *costmodel.Workload) { w.Images = 1 }},
		{"attention", "attention=sdpa works", func(w *costmodel.Workload) { w.Attention = value.FlashAttention }},
		{"attention", "attention=sdpa works", func(w *costmodel.Workload) { w.Attention = value.EagerAttention }},
		{"optimizer", "optimizer=adamw works", func(w *costmodel.Workload) { w.Optimizer = value.Muon }},
		{"loss", "loss=eager works", func(w *costmodel.Workload) { w.Loss = value.LossChunked }},
		{"loss", "loss=eager works", func(w *costmodel.Workload) { w.Loss = value.LossFused }},
		{"loss_only", "loss_only=false works", func(w *costmodel.Workload) { w.LossOnly = true }},
		{"ema", "ema=false works", func(w *costmodel.Workload) { w.EMA = true }},
	} {
		workload := costmodel.Workload{Mode: costmodel.Train, Precision: costmodel.BF16True, Optimizer: costmodel.SGD, Attention: value.SDPA, Loss: value.LossEager}
		if err := (devmap{}).Refuse(&workload); err != nil {
			t.Fatalf("what it runs is refused: %v", err)
		}
		c.change(&workload)
		var fault *costmodel.FieldError
		if err := (devmap{}).Refuse(&workload); !errors.As(err, &fault) || fault.Field != c.field || !strings.Contains(err.Error(), c.works) {
			t.Errorf("%s: %v, want %s", c.field, err, c.works)
		}
	}
	workload := costmodel.Workload{Mode: costmodel.Infer, Precision: costmodel.FP32True, Optimizer: value.Muon, EMA: true, Loss: value.LossFused}
	if err := (devmap{}).Refuse(&workload); err != nil {
		t.Errorf("of a forward: %v", err)
	}
}
