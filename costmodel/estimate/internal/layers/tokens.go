package layers

import (
	"math"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// tokensOf is a stream's number of tokens in one micro-batch, and the length of a sequence.
func tokensOf(workload *costmodel.Workload, stream modelgraph.Stream) (tokens, length int64) {
	sequences := MicroBatch(workload)
	switch stream.Kind {
	case modelgraph.Target:
		return sequences * workload.TargetSeq, workload.TargetSeq
	case modelgraph.Fixed:
		return sequences * stream.Tokens, stream.Tokens
	case modelgraph.Image:
		each := ImageTokens(stream, workload)
		images := sequences * workload.Images
		if workload.Usual && workload.ImagesMean > 0 {
			images = max(1, int64(math.Round(float64(sequences)*workload.ImagesMean)))
		}
		return images * each, each
	}
	batch := batchOf(workload)
	return batch.Rows * batch.Tokens, batch.Tokens
}

// batchOf is the counted micro-batch. Generated training tokens follow their prompts.
func batchOf(workload *costmodel.Workload) trainer.Batch {
	batch := trainer.Batch{Rows: MicroBatch(workload), Tokens: workload.Seq, Real: MicroBatch(workload) * workload.Seq}
	if workload.Rows != nil {
		batch = workload.Rows.Worst
		if workload.Usual {
			batch = workload.Rows.Usual
		}
	}
	if workload.Mode == costmodel.Train && workload.NewTokens > 0 {
		batch.Tokens += workload.NewTokens
		batch.Real += batch.Rows * workload.NewTokens
	}
	return batch
}

// fillRows sets attention's view of the rows. Rows of several documents, and padded ones, have a
// mask under SDPA and eager attention (transformers/masking_utils.py, create_causal_mask).
func fillRows(shape *ops.Shape, workload *costmodel.Workload, batch *trainer.Batch) {
	packs := trainer.Of(workload.Preset).Packs
	apart := batch.Documents > batch.Rows
	indices := apart && packs.Indices && workload.Packing == trainer.Packed
	varlen := apart && packs.Varlen && workload.Packing == trainer.Packed && workload.Attention == ""
	shape.Documents, shape.Real = batch.Documents, batch.Real
	shape.Masked = batch.Padding || apart && !varlen
	shape.MaskGiven = indices
	shape.Unpads = batch.Padding || indices
	shape.Positions = batch.Documents > 0
	shape.Varlen = varlen
}

// labelled are the positions that the head projects.
func labelled(workload *costmodel.Workload, batch *trainer.Batch, tokens int64) int64 {
	labels, where := workload.LabelTokens, LabelPositions(workload)
	if labels == 0 || where == "" || workload.Mode != costmodel.Train {
		return tokens
	}
	alone := batch.Rows == 1
	count := int64(math.Ceil(labels * float64(batch.Real)))
	if labels > 1 {
		count = int64(labels) * MicroBatch(workload)
	}
	if where == "suffix" {
		mapped := workload.Strategy.Traits().Sequential && batch.Documents > batch.Rows
		if !alone && batch.Padding || mapped {
			return tokens // from the first label of the shortest row, of the first document on
		}
	}
	// "suffix" has the position before the first label. The tiled loss takes off the
	// last position, which carries no label.
	return min(tokens, count+batch.Rows)
}

// LabelPositions are the positions with logits ([trainer.Path.LabelPositions]); among TRL's losses
// only the tiled one restricts them.
func LabelPositions(workload *costmodel.Workload) string {
	where := trainer.Of(workload.Preset).Path.LabelPositions
	if where == "all" && workload.Loss != value.LossTiled {
		return ""
	}
	return where
}

// MicroBatch is the number of sequences that run at once.
func MicroBatch(workload *costmodel.Workload) int64 {
	sequences := workload.Batch / max(1, workload.MicroBatches)
	if workload.Mode == costmodel.Train && trainer.Of(workload.Preset).Path.Pairs {
		sequences *= 2
	}
	return sequences
}

// ImageTokens is the number of tokens of a square image of the workload's size. If only the area is
// bounded, it is the most of any image: sides are multiples, and their product is within the area
// (qwen_vl_utils/vision_process.py, smart_resize). Else it is the stream's own.
func ImageTokens(stream modelgraph.Stream, workload *costmodel.Workload) int64 {
	size, area := workload.ImageSize, workload.MaxPixels
	if size == 0 && area == 0 || stream.Side == 0 {
		return stream.Tokens
	}
	unit := max(1, stream.Multiple)
	each := unit / stream.Side
	if size == 0 {
		return max(1, area/(unit*unit)) * each * each
	}
	side := max(1, (size+unit/2)/unit)
	if area > 0 && side*side*unit*unit > area {
		side = max(1, int64(math.Sqrt(float64(area)))/unit)
	}
	return side * each * side * each
}
