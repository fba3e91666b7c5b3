package hf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph"
)

// TestClassicHostile: sizes that make no model are errors that name the field.
func TestClassicHostile(t *testing.T) {
	for _, tt := range []struct{ config, place, msg string }{
		{`{"model_type": "gpt2", "n_head": 0}`, "n_head", "0 is not a size"},
		{`{"model_type": "gpt2", "n_embd": -64}`, "n_embd", "-64 is not a size"},
		{`{"model_type": "gpt2", "n_inner": 0}`, "n_inner", "0 is not a size"},
		{`{"model_type": "opt", "num_attention_heads": 0}`, "num_attention_heads", "0 is not a size"},
		{`{"model_type": "opt", "word_embed_proj_dim": 0}`, "word_embed_proj_dim", "0 is not a size"},
		{`{"model_type": "bloom", "n_embed": 64, "n_head": 7}`, "n_head", "do not divide"},
		{`{"model_type": "mamba", "expand": 1099511627776}`, "expand", "more than 2^40"},
		{`{"model_type": "mamba", "time_step_rank": "large"}`, "time_step_rank", `"large" is neither`},
		{`{"model_type": "mamba", "conv_kernel": 0}`, "conv_kernel", "0 is not a size"},
		{`{"model_type": "bert", "hidden_size": 100, "num_attention_heads": 12}`, "num_attention_heads", "do not divide"},
		{`{"model_type": "vit", "patch_size": 0}`, "patch_size", "not sides"},
		{`{"model_type": "vit", "image_size": 8}`, "image_size", "hold no patch"},
		{`{"model_type": "vit", "image_size": [224, 8]}`, "image_size", "hold no patch"},
		{`{"model_type": "vit", "image_size": [224, 224, 3]}`, "image_size", "not a height and a width"},
		{`{"model_type": "vit", "hidden_size": 8}`, "num_attention_heads", "leave no width"},
		{`{"model_type": "vit", "num_attention_heads": 0}`, "num_attention_heads", "0 is not a size"},
		{`{"model_type": "whisper", "decoder_attention_heads": 5}`, "decoder_attention_heads", "do not divide"},
		{`{"model_type": "whisper", "encoder_attention_heads": 0}`, "encoder_attention_heads", "0 is not a size"},
		{`{"model_type": "whisper", "decoder_layers": 1e9}`, "decoder_layers", "not a size"},
	} {
		_, err := FromConfig("config.json", []byte(tt.config))
		var syn *modelgraph.SyntaxError
		if !errors.As(err, &syn) {
			t.Errorf("%s: error %v, want a SyntaxError", tt.config, err)
			continue
		}
		if syn.Place != tt.place || !strings.Contains(syn.Msg, tt.msg) {
			t.Errorf("%s: %v, want %q with %q", tt.config, err, tt.place, tt.msg)
		}
	}
}

// TestClassicNoLayers: a model without blocks still has its data flow.
func TestClassicNoLayers(t *testing.T) {
	for _, config := range []string{
		`{"model_type": "gpt2", "n_layer": 0}`,
		`{"model_type": "opt", "num_hidden_layers": 0, "word_embed_proj_dim": 32}`,
		`{"model_type": "bloom", "n_layer": 0}`,
		`{"model_type": "mamba", "num_hidden_layers": 0}`,
		`{"model_type": "t5", "num_layers": 0}`,
		`{"model_type": "bert", "num_hidden_layers": 0}`,
		`{"model_type": "vit", "num_hidden_layers": 0}`,
		`{"model_type": "whisper", "encoder_layers": 0, "decoder_layers": 0}`,
	} {
		if _, err := FromConfig("config.json", []byte(config)); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestClassicMaxSeq(t *testing.T) {
	for config, want := range map[string]int64{
		`{"model_type": "gpt2"}`:                      1024,
		`{"model_type": "gpt2", "n_positions": 77}`:   77,
		`{"model_type": "opt"}`:                       2048,
		`{"model_type": "bert"}`:                      512,
		`{"model_type": "bloom", "seq_length": 2048}`: 0,
		`{"model_type": "t5", "n_positions": 512}`:    0,
		`{"model_type": "mamba"}`:                     0,
		`{"model_type": "whisper"}`:                   448,
	} {
		if g := classicGraph(t, config); g.MaxSeq != want {
			t.Errorf("%s: longest sequence %d, want %d", config, g.MaxSeq, want)
		}
	}
}

// TestClassicFlow checks the operation, inputs and tokens of layers.
func TestClassicFlow(t *testing.T) {
	target := modelgraph.Stream{Kind: modelgraph.Target}
	frames := modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: 1500}
	for _, tt := range []struct {
		config, layer string
		op            modelgraph.Op
		inputs        []string
		stream        modelgraph.Stream
	}{
		{
			`{"model_type": "t5"}`, "decoder.block.1.layer.1.EncDecAttention",
			modelgraph.Attention{Dim: 512, Heads: 8, KVHeads: 8, HeadDim: 64, Cross: true, Eager: true, ScoreBias: "relative", BiasCopied: true, Unfused: true, OwnScores: true, Dropout: true, InnerDropout: true},
			[]string{"decoder.block.1.layer.1.layer_norm", "decoder.block.1.layer.0.SelfAttention", "encoder.final_layer_norm"},
			target,
		},
		{
			`{"model_type": "t5", "feed_forward_proj": "gated-gelu"}`, "encoder.block.0.layer.1.DenseReluDense",
			modelgraph.MLP{Dim: 512, Hidden: 2048, Gated: true, Activation: "gelu_new", Dropout: true, InnerDropout: true},
			[]string{"encoder.block.0.layer.1.layer_norm", "encoder.block.0.layer.0.SelfAttention"},
			modelgraph.Stream{},
		},
		{
			`{"model_type": "whisper"}`, "model.encoder.conv1",
			modelgraph.Conv{In: 80, Out: 384, Kernel: 3, TokenRatio: 2, Activation: "gelu"},
			[]string{},
			frames,
		},
		{
			`{"model_type": "whisper"}`, "model.decoder.layers.0.encoder_attn",
			modelgraph.Attention{Dim: 384, Heads: 6, KVHeads: 6, HeadDim: 64, Cross: true, OwnScores: true},
			[]string{"model.decoder.layers.0.encoder_attn_layer_norm", "model.decoder.layers.0.self_attn", "model.encoder.layer_norm"},
			target,
		},
		{
			`{"model_type": "vit"}`, "vit.embeddings",
			modelgraph.Embedding{Vocab: 197, Dim: 768},
			[]string{"vit.embeddings.patch_embeddings.projection"},
			modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: 197},
		},
		{
			`{"model_type": "bert"}`, "bert.encoder.layer.1.attention",
			modelgraph.Attention{Dim: 768, Heads: 12, KVHeads: 12, HeadDim: 64, Bidirectional: true, Dropout: true, OwnScores: true, InnerDropout: true},
			[]string{"bert.encoder.layer.0.output.LayerNorm", "bert.encoder.layer.0.output.LayerNorm"},
			modelgraph.Stream{},
		},
		{
			`{"model_type": "bloom", "apply_residual_connection_post_layernorm": true}`, "transformer.h.0.self_attention",
			modelgraph.Attention{Dim: 64, Heads: 8, KVHeads: 8, HeadDim: 8, Fused: true, Eager: true, ScoreBias: "alibi", ExtraScores: 2},
			[]string{"transformer.h.0.input_layernorm", "transformer.h.0.input_layernorm"},
			modelgraph.Stream{},
		},
		{ // a layer whose number the heads divide is not the first
			`{"model_type": "bloom", "n_layer": 24, "n_head": 16}`, "transformer.h.16.self_attention",
			modelgraph.Attention{Dim: 64, Heads: 16, KVHeads: 16, HeadDim: 4, Fused: true, Eager: true, ScoreBias: "alibi", ExtraScores: 2},
			[]string{"transformer.h.16.input_layernorm", "transformer.h.15.mlp"},
			modelgraph.Stream{},
		},
		{
			`{"model_type": "opt", "word_embed_proj_dim": 512}`, "model.decoder.project_out",
			modelgraph.Linear{In: 768, Out: 512},
			[]string{"model.decoder.final_layer_norm"},
			modelgraph.Stream{},
		},
		{
			`{"model_type": "mamba", "hidden_size": 72}`, "backbone.layers.1.mixer",
			modelgraph.StateSpace{Dim: 72, Inner: 144, State: 16, Kernel: 4, DtRank: 5, FP32Residual: true},
			[]string{"backbone.layers.1.norm", "backbone.layers.0.mixer"},
			modelgraph.Stream{},
		},
	} {
		g := classicGraph(t, tt.config)
		i, ok := layerNamed(g, tt.layer)
		if !ok {
			t.Errorf("%s: no layer %q", tt.config, tt.layer)
			continue
		}
		l := g.Layers[i]
		if d := cmp.Diff(tt.op, l.Op); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.layer, d)
		}
		if !slices.Equal(l.Inputs, tt.inputs) || l.Stream != tt.stream {
			t.Errorf("%s reads %v on %v, want %v on %v", tt.layer, l.Inputs, l.Stream, tt.inputs, tt.stream)
		}
	}
}

// TestT5KeepsFP32 checks _keep_in_fp32_modules: wo, in half precision only.
func TestT5KeepsFP32(t *testing.T) {
	for name, want := range map[string]modelgraph.DType{
		"float16": modelgraph.F32, "bfloat16": modelgraph.BF16, "float32": modelgraph.F32,
	} {
		g := classicGraph(t, `{"model_type": "t5", "torch_dtype": "`+name+`"}`)
		i, _ := layerNamed(g, "encoder.block.0.layer.1.DenseReluDense")
		if got := g.Layers[i].Params[1]; got.Name != "wo.weight" || got.DType != want {
			t.Errorf("%s: %s is %v, want wo.weight in %v", name, got.Name, got.DType, want)
		}
	}
}

func classicGraph(t *testing.T, config string) *modelgraph.Graph {
	t.Helper()
	g, err := FromConfig("config.json", []byte(config))
	if err != nil {
		t.Fatalf("%s: %v", config, err)
	}
	return g
}

// TestChoices: a head for multiple choice says what a sequence is; other heads say nothing.
func TestChoices(t *testing.T) {
	for class, noted := range map[string]bool{"BertForMultipleChoice": true, "BertForSequenceClassification": false} {
		graph, err := FromConfig("config.json", asJSON(t, fields{"model_type": "bert", "architectures": []string{class}}))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(graph.Warnings, "\n"), "four of --batch"); got != noted {
			t.Errorf("%s: noted is %v in %q", class, got, graph.Warnings)
		}
	}
}

// TestCausalLoss: the causal classes of BERT and its kind call ForCausalLMLoss, which reads logits in fp32; masked ones
// call CrossEntropyLoss on the logits as they are.
func TestCausalLoss(t *testing.T) {
	for kind, causal := range map[string]string{
		"bert": "BertLMHeadModel", "big_bird": "BigBirdForCausalLM", "roberta": "RobertaForCausalLM", "xlm-roberta": "XLMRobertaForCausalLM",
		"camembert": "CamembertForCausalLM", "electra": "ElectraForCausalLM",
	} {
		masked := strings.NewReplacer("ForCausalLM", "ForMaskedLM", "LMHeadModel", "ForMaskedLM").Replace(causal)
		for class, own := range map[string]bool{causal: false, masked: true} {
			graph, err := FromConfig("config.json", fmt.Appendf(nil, `{"model_type":%q,"architectures":[%q],"num_hidden_layers":1}`, kind, class))
			if err != nil {
				t.Fatal(err)
			}
			heads := 0
			for i := range graph.Layers {
				if head, ok := graph.Layers[i].Op.(modelgraph.Head); ok {
					heads++
					if head.OwnType != own {
						t.Errorf("%s: its loss reads logits in their own type: %v, want %v", class, head.OwnType, own)
					}
				}
			}
			if heads != 1 {
				t.Errorf("%s has %d heads", class, heads)
			}
		}
	}
}

// TestFrozenByTable: no gradient reaches the pooler of BigBird's token heads, nor the global
// projections of a Longformer without global tokens.
func TestFrozenByTable(t *testing.T) {
	for config, want := range map[string]int{
		`{"model_type": "big_bird", "architectures": ["BigBirdForMaskedLM"]}`:                                            2,
		`{"model_type": "big_bird", "architectures": ["BigBirdForSequenceClassification"]}`:                              0,
		`{"model_type": "longformer", "num_hidden_layers": 2, "architectures": ["LongformerForMaskedLM"]}`:               12,
		`{"model_type": "longformer", "num_hidden_layers": 2, "architectures": ["LongformerForSequenceClassification"]}`: 0,
	} {
		graph := fixtures.Must(FromConfig(ConfigName, []byte(config)))(t)
		frozen := 0
		for i := range graph.Layers {
			for j := range graph.Layers[i].Params {
				if graph.Layers[i].Params[j].Frozen {
					frozen++
				}
			}
		}
		if frozen != want {
			t.Errorf("%s: %d frozen parameters, want %d", config, frozen, want)
		}
	}
}

// TestT5Decoder: an encoder under is_decoder has the tensors that Transformers 5.17 builds. The
// counts are its own.
func TestT5Decoder(t *testing.T) {
	for config, want := range map[string]int64{
		`{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "is_decoder": true}`:  60506624,
		`{"model_type": "t5", "architectures": ["T5Model"], "is_decoder": true}`:                     60506624,
		`{"model_type": "t5", "architectures": ["T5ForSequenceClassification"], "is_decoder": true}`: 60770306,
		`{"model_type": "t5", "architectures": ["T5EncoderModel"], "is_decoder": true}`:              41625344,
		`{"model_type": "umt5", "architectures": ["UMT5EncoderModel"], "is_decoder": true}`:          153237504,
	} {
		graph := fixtures.Must(FromConfig(ConfigName, []byte(config)))(t)
		if got := graph.ParamCount(); got != want {
			t.Errorf("%s: %d parameters, want %d", config, got, want)
		}
	}
}
