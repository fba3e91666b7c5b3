package estimate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/costmodel/internal/trainer"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// resolveBatches computes the largest and the usual micro-batch, if samples differ in length, share
// rows or are padded to a multiple.
func resolveBatches(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	workload.Rows = nil
	given := workload.Lengths.Max > 0 || workload.Packing != ""
	packs := trainer.Of(workload.Preset).Packs
	if !given && (workload.Mode != costmodel.Train || workload.Seq%max(1, packs.Multiple) == 0) {
		return checkLabels(workload)
	}
	if err := checkBatches(graph, workload); err != nil {
		if given {
			return err
		}
		return nil // a model that the multiple is not for
	}
	packs.OneRow = packs.OneRow || packs.FlashOneRow && workload.Attention == value.FlashAttention
	rule := trainer.Rule{Samples: layers.MicroBatch(workload), Seq: workload.Seq, Packing: workload.Packing, Packs: packs}
	rows, err := rule.Batches(&workload.Lengths)
	if err != nil && workload.Lengths.Max > 0 && !packs.Drops {
		return refuse("lengths", "", "%v: use a smaller %v, or a file with more lengths", err, costmodel.Setting{Field: "batch"})
	}
	if err != nil {
		return refuse("lengths", "", "%v: use a smaller %v or a longer %v", err, costmodel.Setting{Field: "batch"}, costmodel.Setting{Field: "seq"})
	}
	for _, batch := range []*trainer.Batch{&rows.Worst, &rows.Usual} {
		if !batch.Sound() {
			return refuse("batch", workload.Batch, "%d rows of %d tokens are more than 2^32 tokens", batch.Rows, batch.Tokens)
		}
	}
	workload.Rows = rows
	return checkLabels(workload)
}

// checkBatches refuses lengths and packing if model, engine or mode has no batches of samples.
func checkBatches(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	field, what := "lengths", ""
	if workload.Lengths.Max == 0 {
		field, what = "packing", workload.Packing
	}
	traits, packs := workload.Strategy.Traits(), trainer.Of(workload.Preset).Packs
	switch {
	case workload.Mode != costmodel.Train:
		return refuse(field, what, "batches of samples are of training: use %v", costmodel.Set("mode", costmodel.Train))
	case traits.Staged, workload.Runtime == value.JAX, workload.Runtime == costmodel.Devmap:
		return refuse(field, what, "%v under %v has micro-batches of one length: set it with %v", costmodel.Set("strategy", workload.Strategy), costmodel.Set("runtime", workload.Runtime), costmodel.Setting{Field: "seq"})
	case hasTarget(graph) || !slices.ContainsFunc(graph.Layers, isText):
		return refuse(field, what, "devmap counts lengths of samples for decoder-only models of text: set %v", costmodel.Setting{Field: "seq"})
	case len(packs.Kinds) > 0 && !slices.Contains(packs.Kinds, cmp.Or(workload.Packing, trainer.Padded)):
		return refuse(field, what, "%v batches samples in another way: use %v", costmodel.Set("preset", workload.Preset), costmodel.Set("packing", packs.Kinds[0]))
	case packs.FlashOnly && (workload.Packing == trainer.Packed || workload.Packing == trainer.PaddingFree) && workload.Attention != value.FlashAttention:
		return refuse("packing", workload.Packing, "%v packs rows under flash attention alone: use %v", costmodel.Set("preset", workload.Preset), costmodel.Set("attention", value.FlashAttention))
	case workload.Packing != "" && slices.ContainsFunc(graph.Layers, isRecurrent):
		return refuse("packing", workload.Packing, "the model has recurrent layers, whose packed rows devmap does not count: use %v", costmodel.Set("packing", trainer.Padded))
	}
	return nil
}

// isText reports attention over a text's own tokens.
func isText(layer modelgraph.Layer) bool {
	attention, ok := layer.Op.(modelgraph.Attention)
	return ok && layer.Stream.Kind == modelgraph.Text && !attention.Cross
}

// isRecurrent reports a layer that has a state in the place of attention.
func isRecurrent(layer modelgraph.Layer) bool {
	_, ok := layer.Op.(modelgraph.StateSpace)
	return ok
}

// checkLabels refuses numbers of label tokens that no sample has.
func checkLabels(workload *costmodel.Workload) error {
	labels := workload.LabelTokens
	fault := trainer.LabelFault(labels)
	switch {
	case labels == 0:
	case fault != "":
		return refuse("label_tokens", labels, "%s", fault)
	case workload.Mode != costmodel.Train:
		return refuse("label_tokens", labels, "labels are of training: use %v", costmodel.Set("mode", costmodel.Train))
	case labels > float64(workload.Seq):
		return refuse("label_tokens", labels, "%v are more than the %d tokens of a sample", labels, workload.Seq)
	}
	return nil
}

// allLogits says that a number of label tokens changes nothing.
func allLogits(_ *costmodel.Table, model *layers.Model) []costmodel.Message {
	workload := &model.Workload
	generates := trainer.Of(workload.Preset).Path.Generates // its labels are the completion
	if workload.LabelTokens == 0 || generates || layers.LabelPositions(workload) != "" {
		return nil
	}
	return []costmodel.Message{costmodel.Messagef("%v changes nothing: %v makes the logits of all tokens (ms-swift, and trl-sft and trl-dpo with %v, do not)",
		costmodel.Setting{Field: "label_tokens"}, costmodel.Set("preset", trainer.Of(workload.Preset).Name), costmodel.Set("loss", value.LossTiled))}
}

// usual adds the costs of the usual micro-batch to the table of the largest.
func usual(graph *modelgraph.Graph, table *costmodel.Table) error {
	workload := table.Workload
	rows := workload.Rows
	if workload.Usual || rows == nil && workload.ImagesMean == 0 {
		return nil
	}
	if rows != nil {
		table.Warnings = append(table.Warnings, batchesText(&workload))
	}
	if rows != nil && rows.Worst == rows.Usual && workload.ImagesMean == 0 {
		return nil
	}
	workload.Usual = true
	var err error
	if table.Usual, err = Table(graph, workload); err == nil {
		table.Usual.Marks = nil // its pool is the largest's
	}
	return err
}

// batchesText describes the micro-batches, and the limits of a mean and a maximum.
func batchesText(workload *costmodel.Workload) costmodel.Message {
	worst, often := &workload.Rows.Worst, &workload.Rows.Usual
	text := fmt.Sprintf("the largest micro-batch has %s", rowsText(worst))
	if *worst != *often {
		text += fmt.Sprintf(", the usual one %s", rowsText(often))
	}
	switch known := len(workload.Lengths.Counts) > 0; {
	case workload.Rows.AtLeast:
		return costmodel.Messagef("%s at least: a mean and a maximum do not give its longest sample; a file of lengths does (%v)", text, costmodel.Setting{Field: "lengths"})
	case workload.Packing == trainer.Packed && !known:
		return costmodel.Messagef("%s: rows are taken as full of samples of the mean; a file of lengths gives the documents of each row (%v)", text, costmodel.Setting{Field: "lengths"})
	}
	return costmodel.Messagef("%s", text)
}

func rowsText(batch *trainer.Batch) string {
	text := fmt.Sprintf("%d × %d tokens", batch.Rows, batch.Tokens)
	switch {
	case batch.Documents > batch.Rows:
		text += fmt.Sprintf(" of up to %d samples", batch.Documents)
	case batch.Padding && batch.Real < batch.Rows*batch.Tokens:
		text += fmt.Sprintf(", %.0f%% padding", 100*(1-float64(batch.Real)/float64(batch.Rows*batch.Tokens)))
	}
	return text
}
