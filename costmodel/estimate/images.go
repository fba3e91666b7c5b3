package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/internal/ops"
	"github.com/devmap-dev/devmap/modelgraph"
)

// checkImages refuses images that the model cannot take. As in the
// processors, which put placeholders into input_ids, the tokens of images are
// part of the sequence.
func checkImages(g *modelgraph.Graph, w *costmodel.Workload) error {
	if w.Mode == costmodel.Load || w.Images == 0 && w.ImageSize == 0 {
		return nil
	}
	tower, free := false, false
	for i := range g.Layers {
		s := g.Layers[i].Stream
		tower = tower || s.Kind == modelgraph.Image
		free = free || s.Side > 0
	}
	switch {
	case !tower && w.Images > 0:
		return &costmodel.FieldError{Field: "images", Msg: costmodel.Messagef("the model has no vision tower that reads images beside text")}
	case w.ImageSize == 0:
	case w.ImageSize < 0 || w.ImageSize > maxImageSize:
		return &costmodel.FieldError{Field: "image_size", Msg: costmodel.Messagef("%d is not a side from 1 to %d pixels", w.ImageSize, maxImageSize)}
	case w.Images == 0:
		return &costmodel.FieldError{Field: "image_size", Msg: costmodel.Messagef("there is no image without %v", costmodel.Setting{Field: "images"})}
	case !free:
		return &costmodel.FieldError{Field: "image_size", Msg: costmodel.Messagef("the model's images have one size; a larger picture is cut into tiles, of which each is one of %v", costmodel.Setting{Field: "images"})}
	}
	return checkImageTokens(g, w)
}

// maxImageSize bounds the side of an image, in pixels.
const maxImageSize = 1 << 16

// checkImageTokens holds the image features that text layers read to the
// length of a sequence.
func checkImageTokens(g *modelgraph.Graph, w *costmodel.Workload) error {
	for i := range g.Layers {
		if g.Layers[i].Stream.Kind != modelgraph.Text {
			continue
		}
		for _, j := range g.Layers[i].InputLayers() {
			s := g.Layers[j].Stream
			each := s.ImageTokens(w.ImageSize)
			if s.Kind != modelgraph.Image || w.Images == 0 || each <= w.Seq/w.Images {
				continue
			}
			return &costmodel.FieldError{Field: "images", Msg: costmodel.Messagef("%d of %d tokens each are more than the %v of %d, which they are part of (%d fit)", w.Images, each, costmodel.Setting{Field: "seq"}, w.Seq, w.Seq/each)}
		}
	}
	return nil
}

// keepsOutput reports that what a layer reads is kept by the layer that made
// it: a norm counts its output, and a projection what its activation makes.
func (e *estimator) keepsOutput(l *modelgraph.Layer) bool {
	in := l.InputLayers()
	if len(in) == 0 {
		return false
	}
	// Frozen linear layers keep no input, but those of LLM.int8().
	reads := !e.frozen() || e.w.Quantize == costmodel.Int8
	switch op := e.g.Layers[in[0]].Op.(type) {
	case modelgraph.Norm:
		return reads && !op.Post && !e.compute.Mixed()
	case modelgraph.Linear:
		return op.Activation != "" && (reads || ops.KeepsOutput(op.Activation))
	}
	return false
}

// pixels is the size of the images in inference, which stay where the caller
// put them: on the input's device. In training the convolution keeps them.
func (e *estimator) pixels() int64 {
	if e.w.Mode != costmodel.Infer {
		return 0
	}
	var n int64
	for i := range e.g.Layers {
		l := &e.g.Layers[i]
		if conv, ok := l.Op.(modelgraph.Conv); ok && l.Stream.Kind == modelgraph.Image && len(l.InputLayers()) == 0 {
			patches, _ := e.w.Tokens(l.Stream)
			n += patches * conv.In * max(1, conv.Stride) * e.compute.ComputeBytes()
		}
	}
	return n
}

// embedsLast is the backward of a text embedding beside a tower. It runs
// before the tower in forward, though it stands behind it, so that autograd
// comes to it last (modeling_internvl.py InternVLModel.forward: embeddings,
// then get_image_features): with a tied head, its gradient and the sum of both
// are made when the whole tower has its gradients. The sum is a tensor of its
// own, but for autocast, whose casts autograd may add to (input_buffer.cpp
// accumulate; seen in fixtures/measured/vl_history.json, layers_time.json).
func (e *estimator) embedsLast(u int, out *costmodel.Unit) {
	if e.w.Images == 0 || e.w.Mode != costmodel.Train || out.HeldGrads > 0 {
		return
	}
	for k, i := range e.g.Units[u].Exec {
		l := &e.g.Layers[i]
		if _, ok := l.Op.(modelgraph.Embedding); ok && l.Stream.Kind == modelgraph.Text {
			out.Last = max(out.Last, out.Steps[k].Backward-out.Steps[k].Grads)
			if !e.compute.Mixed() {
				out.Last = max(out.Last, 2*e.grads[i].second)
			}
		}
	}
}
