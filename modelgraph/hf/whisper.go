package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"whisper"},
		class: "WhisperForConditionalGeneration",
		classes: []string{
			"WhisperForConditionalGeneration", "WhisperModel", "WhisperForCausalLM", "WhisperForAudioClassification",
		},
		build:  func(modules *builder, cfg *config, class string) { readWhisper(cfg).build(modules, cfg, class) },
		maxSeq: func(cfg *config) int64 { return cfg.pos(448, "max_target_positions") },
	})
}

// whisper is configuration_whisper.py: WhisperConfig.
type whisper struct {
	hidden, vocab, mels              int64
	sourcePositions, targetPositions int64
	encoderLayers, decoderLayers     int64

	encoder, decoder fairseqBlock
	tied             bool
}

func readWhisper(cfg *config) *whisper {
	hidden := cfg.pos(384, "hidden_size", "d_model")
	act := cfg.str("gelu", "activation_function")
	model := &whisper{
		hidden: hidden, vocab: cfg.pos(51865, "vocab_size"), mels: cfg.pos(80, "num_mel_bins"),
		sourcePositions: cfg.pos(1500, "max_source_positions"),
		targetPositions: cfg.pos(448, "max_target_positions"),
		encoderLayers:   cfg.count(4, "num_hidden_layers", "encoder_layers"),
		decoderLayers:   cfg.count(4, "decoder_layers"),
		encoder: fairseqBlock{
			attention: equalHeads(cfg, hidden, 6, "num_attention_heads", "num_key_value_heads", "encoder_attention_heads"),
			mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(1536, "encoder_ffn_dim"), Activation: act},
		},
		decoder: fairseqBlock{
			attention: equalHeads(cfg, hidden, 6, "decoder_attention_heads"),
			mlp:       modelgraph.MLP{Dim: hidden, Hidden: cfg.pos(1536, "decoder_ffn_dim"), Activation: act},
			cross:     true,
		},
		tied: cfg.bool(true, "tie_word_embeddings"),
	}
	model.encoder.attention.Bidirectional = true
	model.encoder.attention.OwnScores, model.decoder.attention.OwnScores = true, true
	return model
}

func (model *whisper) build(modules *builder, cfg *config, class string) {
	switch class {
	case "WhisperForAudioClassification":
		modules.on(model.frames(), func() { model.audioClassifier(modules, cfg) })
	case "WhisperForCausalLM": // the encoder's output comes from outside
		model.decoderStack(modules, "model.decoder")
		model.head(modules)
	case "WhisperModel":
		model.both(modules, "")
	default:
		model.both(modules, "model")
		modules.on(modelgraph.Stream{Kind: modelgraph.Target}, func() { model.head(modules) })
	}
}

// both is modeling_whisper.py: WhisperModel.
func (model *whisper) both(modules *builder, path string) {
	modules.on(model.frames(), func() { model.encoderStack(modules, dot(path, "encoder")) })
	model.decoder.encoder = modules.hidden
	modules.on(modelgraph.Stream{Kind: modelgraph.Target}, func() { model.decoderStack(modules, dot(path, "decoder")) })
}

func (model *whisper) head(modules *builder) {
	tied := ""
	if model.tied {
		tied = "model.decoder.embed_tokens.weight"
	}
	addHead(modules, "proj_out", modelgraph.Head{Dim: model.hidden, Vocab: model.vocab, OwnType: true}, tied)
}

// frames is the stream of the encoder, which takes audio of one length only.
func (model *whisper) frames() modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: model.sourcePositions}
}
