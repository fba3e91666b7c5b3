package layers

import (
	"github.com/devmap-dev/devmap/costmodel/internal/shard"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
)

// quantised are the tensors that replace parameter j if its weight is quantised, in bytes, or nil
// if it keeps its type. Every linear layer but the output head is quantised
// (transformers/integrations/bitsandbytes.py, replace_with_bnb_linear).
func (part *Part) quantised(j int) []int64 {
	tensor, linear := &part.Params[j], part.linear[j]
	if linear == nil || linear.Head || tensor.Owner != "" {
		return nil
	}
	switch part.model.Workload.Quantize {
	case value.NF4:
		if part.whole == nil {
			return NF4(tensor.Numel, part.model.Rules.FlatNF4)
		}
		// FSDP2 cuts the storage, a column of bf16 with four weights each
		// (bnb_4bit_quant_storage); Linear4bit keeps the statistics whole.
		weights := part.whole[j]
		out := NF4(weights, part.model.Rules.FlatNF4)
		out[0] = 2 * shard.Share((weights+3)/4, part.degree)
		return out
	case value.Int8:
		return []int64{tensor.Numel, 4 * linear.Out} // rows and their scales (Int8Params.CB, SCB)
	}
	return nil
}

// Packed is the size of parameter j's 4-bit weights without their statistics; 0 if it has none.
func (part *Part) Packed(j int) int64 {
	if parts := part.quantised(j); parts != nil && part.model.Workload.Quantize == value.NF4 {
		return parts[0]
	}
	return 0
}

// NF4 is the bytes of bitsandbytes/functional.py quantize_4bit: two values a byte, an absolute
// maximum per 64 of them, and the table of 16 values. Nested, maxima are bytes, with an fp32
// maximum per 256, their mean and a table of 256.
func NF4(weights int64, flat bool) []int64 {
	blocks := (weights + 63) / 64
	if flat {
		return []int64{(weights + 1) / 2, 4 * blocks, 16 * 4}
	}
	return []int64{(weights + 1) / 2, blocks, 16 * 4, 4 * ((blocks + 255) / 256), 4, 256 * 4}
}
