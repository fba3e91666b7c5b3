package estimate

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/value"
	"github.com/devmap-dev/devmap/modelgraph"
)

// refuse is the error that a field's value does not suit the workload or the model.
func refuse(field string, value any, format string, args ...any) error {
	return costmodel.Refuse(costmodel.Set(field, value), format, args...)
}

// checkComponent refuses a component of a diffusion pipeline: what its forward
// holds depends on pictures, not on a sequence (costmodel/phases works it out).
func checkComponent(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if graph.Family != "diffusers" || workload.Mode == costmodel.Load {
		return nil
	}
	return refuse("mode", workload.Mode, "%s is a component of a diffusion pipeline: plan the pipeline's folder, the one with model_index.json, where one component can be asked for alone (%v takes it, weights alone)",
		graph.Class, costmodel.Set("mode", costmodel.Load))
}

// checkInference refuses to train an ONNX graph: no modelled runtime trains one.
func checkInference(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Mode != costmodel.Train || !strings.EqualFold(filepath.Ext(graph.Source), ".onnx") {
		return nil
	}
	return refuse("mode", workload.Mode, "an ONNX file describes inference: plan its training from the module, with devmap.export in Python (%v takes the file)", costmodel.Set("mode", costmodel.Infer))
}

// checkRepeated refuses checkpoints of layers that run several times: the only model that has them,
// ALBERT, has none in Transformers 5.17 (modeling_albert.py: no GradientCheckpointingLayer).
func checkRepeated(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Recompute != costmodel.RecomputeFull && workload.Recompute != value.RecomputeSelective && !workload.ListsRecomputed() {
		return nil
	}
	for i := range graph.Layers {
		if layer := &graph.Layers[i]; layer.Repeat > 1 {
			return refuse("recompute", workload.Recompute, "layer %q runs %d times in one forward, and what checkpoints of it keep is not modelled (%v takes it)",
				layer.Name, layer.Repeat, costmodel.Set("recompute", costmodel.RecomputeNone))
		}
	}
	return nil
}

// checkGenerated refuses to generate with a model that cannot: without a head over a vocabulary, as
// CLIP, or with bidirectional attention only, as BERT.
func checkGenerated(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.NewTokens == 0 || graph.Family == "" {
		return nil
	}
	causal, encodes, uncached := attends(graph)
	head := generates.MatchString(graph.Class) || slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool {
		head, found := layer.Op.(modelgraph.Head)
		return found && !head.Pooled && !labels.MatchString(graph.Class)
	})
	leave := costmodel.Setting{Field: "new_tokens"}
	switch {
	case encodes && !causal:
		return refuse("new_tokens", workload.NewTokens, "%s is an encoder, which generates no tokens: leave %v out", graph.Class, leave)
	case !head && graph.Class != "":
		return refuse("new_tokens", workload.NewTokens, "%s has no head of a language model, and generates no tokens: leave %v out", graph.Class, leave)
	case uncached:
		return refuse("new_tokens", workload.NewTokens, "%s has no KV cache, so each new token is a forward of all tokens: leave %v out, and count the new tokens in %v", graph.Class, leave, costmodel.Setting{Field: "seq"})
	}
	return nil
}

// attends reports whether a layer is causal, whether the model has attention, and whether any of it takes no cache.
func attends(graph *modelgraph.Graph) (causal, encodes, uncached bool) {
	for i := range graph.Layers {
		switch op := graph.Layers[i].Op.(type) {
		case modelgraph.StateSpace:
			causal = true
		case modelgraph.Attention:
			causal, encodes, uncached = causal || !op.Bidirectional && !op.Cross, true, uncached || op.Uncached
		}
	}
	return causal, encodes, uncached
}

// generates are Transformers' classes with generate (GenerationMixin), even with unknown layers.
// labels are those with a head over labels, not words.
var (
	generates = regexp.MustCompile(`CausalLM|LMHead|Generation$|^EncoderDecoderModel$`)
	labels    = regexp.MustCompile(`For(TokenClassification|QuestionAnswering)$`)
)

// checkText refuses models other than decoders of text under Megatron and torchtitan.
func checkText(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	asked, titan := costmodel.Set("runtime", workload.Runtime), workload.Runtime == value.Torchtitan
	if strings.HasPrefix(workload.Preset, value.Torchtitan) {
		asked, titan = costmodel.Set("preset", workload.Preset), true
	}
	if graph.Family == "" || workload.Mode != costmodel.Train || !titan && workload.Runtime != value.Megatron {
		return nil
	}
	why, tied := noDecoder(graph, titan)
	switch {
	case why != "":
		return costmodel.Refuse(asked, "it trains decoders of text, and %s %s: leave it out, and use %v", graph.Class, why, costmodel.Set("strategy", costmodel.FSDP))
	case titan && tied && workload.PP.Count() > 1: // models/common/decoder.py, update_from_config
		return refuse("pp", workload.PP, "torchtitan has no pipeline of a model whose head is its embedding (%v works)", costmodel.Set("pp", 1))
	}
	return nil
}

// noDecoder says why a model is no text decoder, and whether its head is its embedding. torchtitan
// runs model.model.layers of Transformers' classes
// (experiments/transformers_modeling_backend/model.py, HFTransformerModel).
func noDecoder(graph *modelgraph.Graph, titan bool) (why string, tied bool) {
	why, elsewhere := "has no head of a language model", ""
	for i := range graph.Layers {
		layer := &graph.Layers[i]
		if kind := layer.Stream.Kind; kind == modelgraph.Image || kind == modelgraph.Target {
			return "is none", false
		}
		switch op := layer.Op.(type) {
		case modelgraph.Attention:
			if op.Bidirectional {
				return "has attention that looks both ways", false
			}
		case modelgraph.Head:
			if !op.Pooled {
				why = ""
			}
			tied = slices.ContainsFunc(layer.Params, func(tensor modelgraph.Tensor) bool { return tensor.Owner != "" })
		}
		if titan && blockName.MatchString(layer.Name) && !strings.HasPrefix(layer.Name, "model.layers.") {
			elsewhere = "has its blocks elsewhere than in model.layers, where torchtitan takes them"
		}
	}
	return cmp.Or(why, elsewhere), tied
}

// blockName is the name of a module in a list of blocks.
var blockName = regexp.MustCompile(`\.\d+(\.|$)`)
