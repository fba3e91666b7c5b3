package hf

import "github.com/devmap-dev/devmap/modelgraph"

// encoderStack is modeling_whisper.py: WhisperEncoder. It returns the layers
// whose outputs the framework calls hidden_states: what goes into each block,
// and the normed end.
func (w *whisper) encoderStack(b *builder, path string) (states []string) {
	h := w.hidden
	// The second convolution halves the rate of the mel frames.
	conv1 := b.add(dot(path, "conv1"), modelgraph.Conv{In: w.mels, Out: h, Kernel: 3, TokenRatio: 2, Activation: "gelu"}, nil,
		tensor("weight", h, w.mels, 3), tensor("bias", h)).Name
	conv2 := b.add(dot(path, "conv2"), modelgraph.Conv{In: h, Out: h, Kernel: 3, Activation: "gelu"}, []string{conv1},
		tensor("weight", h, h, 3), tensor("bias", h)).Name
	b.hidden = addTable(b, dot(path, "embed_positions"), w.sourcePositions, h, conv2)
	for i := range w.encoderLayers {
		states = append(states, b.hidden)
		w.encoder.add(b, indexed(dot(path, "layers"), i))
	}
	b.hidden = addLayerNorm(b, dot(path, "layer_norm"), h, b.hidden)
	return append(states, b.hidden)
}

// decoderStack is modeling_whisper.py: WhisperDecoder.
func (w *whisper) decoderStack(b *builder, path string) {
	b.hidden = addTable(b, dot(path, "embed_tokens"), w.vocab, w.hidden, "")
	b.hidden = addTable(b, dot(path, "embed_positions"), w.targetPositions, w.hidden, b.hidden)
	for i := range w.decoderLayers {
		w.decoder.add(b, indexed(dot(path, "layers"), i))
	}
	b.hidden = addLayerNorm(b, dot(path, "layer_norm"), w.hidden, b.hidden)
}

// audioClassifier is modeling_whisper.py: WhisperForAudioClassification.
func (w *whisper) audioClassifier(b *builder, c *config) {
	weighted := c.bool(false, "use_weighted_layer_sum")
	if weighted {
		b.add("layer_weights", modelgraph.Opaque{}, nil, tensor("", w.encoderLayers+1))
	}
	states := w.encoderStack(b, "encoder")
	if weighted {
		b.layers[0].Inputs = states
		b.hidden = b.layers[0].Name
	}
	size := c.pos(256, "classifier_proj_size")
	projected := b.add("projector", modelgraph.Linear{In: w.hidden, Out: size}, []string{b.hidden},
		linear("", w.hidden, size, true)...).Name
	addClassHead(b, "classifier", size, c.labels(), true, projected)
}
