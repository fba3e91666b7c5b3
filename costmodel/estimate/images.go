package estimate

import (
	"github.com/devmap-dev/devmap/costmodel"
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
		return refuse("images", w.Images, "the model has no vision tower that reads images beside text")
	case w.ImageSize == 0:
	case w.ImageSize < 0 || w.ImageSize > maxImageSize:
		return refuse("image_size", w.ImageSize, "%d is not a side from 1 to %d pixels", w.ImageSize, maxImageSize)
	case w.Images == 0:
		return refuse("image_size", w.ImageSize, "there is no image without %v", costmodel.Setting{Field: "images"})
	case !free:
		return refuse("image_size", w.ImageSize, "the model's images have one size; a larger picture is cut into tiles, of which each is one of %v", costmodel.Setting{Field: "images"})
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
			return refuse("images", w.Images, "%d of %d tokens each are more than the %v of %d, which they are part of (%d fit)", w.Images, each, costmodel.Setting{Field: "seq"}, w.Seq, w.Seq/each)
		}
	}
	return nil
}

// checkStreams refuses token streams whose length times the batch is out of
// range.
func checkStreams(g *modelgraph.Graph, w *costmodel.Workload) error {
	for i := range g.Layers {
		stream := g.Layers[i].Stream
		tokens, field, value := float64(w.MicroBatch())*float64(stream.ImageTokens(w.ImageSize)), "batch", w.Batch
		if stream.Kind == modelgraph.Image {
			tokens, field, value = tokens*float64(w.Images), "images", w.Images
		}
		if tokens > maxTokens {
			return refuse(field, value, "layer %q would see %.3g tokens, more than 2^32", g.Layers[i].Name, tokens)
		}
	}
	return nil
}
