package hf

import "github.com/devmap-dev/devmap/modelgraph"

func init() {
	register(family{
		types: []string{"whisper"},
		class: "WhisperForConditionalGeneration",
		classes: []string{
			"WhisperForConditionalGeneration", "WhisperModel", "WhisperForCausalLM", "WhisperForAudioClassification",
		},
		build:  func(b *builder, c *config, class string) { readWhisper(c).build(b, c, class) },
		maxSeq: func(c *config) int64 { return c.pos(448, "max_target_positions") },
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

func readWhisper(c *config) *whisper {
	h := c.pos(384, "hidden_size", "d_model")
	act := c.str("gelu", "activation_function")
	w := &whisper{
		hidden: h, vocab: c.pos(51865, "vocab_size"), mels: c.pos(80, "num_mel_bins"),
		sourcePositions: c.pos(1500, "max_source_positions"),
		targetPositions: c.pos(448, "max_target_positions"),
		encoderLayers:   c.count(4, "num_hidden_layers", "encoder_layers"),
		decoderLayers:   c.count(4, "decoder_layers"),
		encoder: fairseqBlock{
			attention: equalHeads(c, h, 6, "num_attention_heads", "num_key_value_heads", "encoder_attention_heads"),
			mlp:       modelgraph.MLP{Dim: h, Hidden: c.pos(1536, "encoder_ffn_dim"), Activation: act},
			bias:      true, affine: true, // WhisperAttention's keys have no bias
		},
		decoder: fairseqBlock{
			attention: equalHeads(c, h, 6, "decoder_attention_heads"),
			mlp:       modelgraph.MLP{Dim: h, Hidden: c.pos(1536, "decoder_ffn_dim"), Activation: act},
			bias:      true, affine: true, cross: true,
		},
		tied: c.bool(true, "tie_word_embeddings"),
	}
	w.encoder.attention.Bidirectional = true
	return w
}

func (w *whisper) build(b *builder, c *config, class string) {
	switch class {
	case "WhisperForAudioClassification":
		b.on(w.frames(), func() { w.audioClassifier(b, c) })
	case "WhisperForCausalLM": // the encoder's output comes from outside
		w.decoderStack(b, "model.decoder")
		w.head(b)
	case "WhisperModel":
		w.both(b, "")
	default:
		w.both(b, "model")
		b.on(modelgraph.Stream{Kind: modelgraph.Target}, func() { w.head(b) })
	}
}

// both is modeling_whisper.py: WhisperModel.
func (w *whisper) both(b *builder, path string) {
	b.on(w.frames(), func() { w.encoderStack(b, dot(path, "encoder")) })
	w.decoder.encoder = b.hidden
	b.on(modelgraph.Stream{Kind: modelgraph.Target}, func() { w.decoderStack(b, dot(path, "decoder")) })
}

func (w *whisper) head(b *builder) {
	tied := ""
	if w.tied {
		tied = "model.decoder.embed_tokens.weight"
	}
	addVocabHead(b, "proj_out", w.hidden, w.vocab, tied)
}

// frames is the stream of the encoder, which takes audio of one length only.
func (w *whisper) frames() modelgraph.Stream {
	return modelgraph.Stream{Kind: modelgraph.Fixed, Tokens: w.sourcePositions}
}
