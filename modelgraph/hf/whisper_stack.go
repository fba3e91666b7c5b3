package hf

import "github.com/devmap-dev/devmap/modelgraph"

// encoderStack is modeling_whisper.py: WhisperEncoder. It returns the layers of the framework's
// hidden_states: the input of each block, and the normed end.
func (model *whisper) encoderStack(modules *builder, path string) (states []string) {
	hidden := model.hidden
	// The second convolution halves the rate of the mel frames.
	conv1 := modules.add(dot(path, "conv1"), modelgraph.Conv{In: model.mels, Out: hidden, Kernel: 3, TokenRatio: 2, Activation: "gelu"}, nil,
		tensor("weight", hidden, model.mels, 3), tensor("bias", hidden)).Name
	conv2 := modules.add(dot(path, "conv2"), modelgraph.Conv{In: hidden, Out: hidden, Kernel: 3, Activation: "gelu"}, []string{conv1},
		tensor("weight", hidden, hidden, 3), tensor("bias", hidden)).Name
	modules.hidden = addTable(modules, dot(path, "embed_positions"), model.sourcePositions, hidden, conv2)
	frozen(modules.layers[len(modules.layers)-1].Params) // modeling_whisper.py, requires_grad_(False)
	for i := range model.encoderLayers {
		states = append(states, modules.hidden)
		model.encoder.add(modules, indexed(dot(path, "layers"), i))
	}
	modules.hidden = addLayerNorm(modules, dot(path, "layer_norm"), hidden, modules.hidden)
	return append(states, modules.hidden)
}

// decoderStack is modeling_whisper.py: WhisperDecoder.
func (model *whisper) decoderStack(modules *builder, path string) {
	modules.hidden = addTable(modules, dot(path, "embed_tokens"), model.vocab, model.hidden, "")
	modules.hidden = addTable(modules, dot(path, "embed_positions"), model.targetPositions, model.hidden, modules.hidden)
	for i := range model.decoderLayers {
		model.decoder.add(modules, indexed(dot(path, "layers"), i))
	}
	modules.hidden = addLayerNorm(modules, dot(path, "layer_norm"), model.hidden, modules.hidden)
}

// audioClassifier is modeling_whisper.py: WhisperForAudioClassification.
func (model *whisper) audioClassifier(modules *builder, cfg *config) {
	weighted := cfg.bool(false, "use_weighted_layer_sum")
	if weighted {
		modules.add("layer_weights", modelgraph.Opaque{}, nil, tensor("", model.encoderLayers+1))
	}
	states := model.encoderStack(modules, "encoder")
	if weighted {
		modules.join(0) // forward stacks the outputs of all layers
		modules.layers[0].Inputs = states
		modules.hidden = modules.layers[0].Name
	}
	size := cfg.pos(256, "classifier_proj_size")
	projected := modules.add("projector", modelgraph.Linear{In: model.hidden, Out: size}, []string{modules.hidden},
		linearParams("", model.hidden, size, true)...).Name
	addClassHead(modules, "classifier", size, cfg.labels(), true, projected)
}
