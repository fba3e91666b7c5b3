package estimate

import (
	"slices"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
	"github.com/devmap-dev/devmap/modelgraph"
)

// checkImages refuses images that the model cannot take. Tokens of images are part of the sequence,
// unless cross-attention reads them: the processors put placeholders into input_ids.
func checkImages(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	if workload.Mode == costmodel.Load || workload.Images == 0 && workload.ImageSize == 0 && workload.MaxPixels == 0 {
		return nil
	}
	tower, free := towerOf(graph)
	switch {
	case !tower && workload.Images > 0:
		return refuse("images", workload.Images, "the model has no vision tower, so it reads no images")
	case workload.ImageSize < 0 || workload.ImageSize > maxImageSize:
		return refuse("image_size", workload.ImageSize, "%d is not a side from 1 to %d pixels", workload.ImageSize, maxImageSize)
	}
	field, pixels := "image_size", workload.ImageSize
	if pixels == 0 {
		field, pixels = "max_pixels", workload.MaxPixels
	}
	switch {
	case pixels == 0:
	case workload.Images == 0:
		return refuse(field, pixels, "there is no image without %v", costmodel.Setting{Field: "images"})
	case !free:
		return refuse(field, pixels, "the model's images have one size; a larger picture is cut into tiles, and %v counts tiles", costmodel.Setting{Field: "images"})
	}
	return checkImageTokens(graph, workload)
}

// towerOf reports a vision tower, and one that takes images of any size.
func towerOf(graph *modelgraph.Graph) (tower, free bool) {
	for i := range graph.Layers {
		stream := graph.Layers[i].Stream
		tower = tower || stream.Kind == modelgraph.Image
		free = free || stream.Side > 0
	}
	return tower, free
}

// readsImagesAlone reports a vision tower without a text model: a sequence is an image.
func readsImagesAlone(graph *modelgraph.Graph) bool {
	tower, _ := towerOf(graph)
	return tower && !slices.ContainsFunc(graph.Layers, func(layer modelgraph.Layer) bool { return layer.Op != nil && layer.Stream.Kind != modelgraph.Image })
}

// maxImageSize bounds the side of an image, in pixels.
const maxImageSize = 1 << 16

// checkImageTokens checks the image features that text layers read against the length of a sequence.
func checkImageTokens(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	for i := range graph.Layers {
		if attention, ok := graph.Layers[i].Op.(modelgraph.Attention); graph.Layers[i].Stream.Kind != modelgraph.Text || ok && attention.Cross {
			continue
		}
		for _, j := range graph.Layers[i].InputLayers {
			stream := graph.Layers[j].Stream
			each := layers.ImageTokens(stream, workload)
			if stream.Kind != modelgraph.Image || workload.Images == 0 || each <= workload.Seq/workload.Images {
				continue
			}
			return refuse("images", workload.Images, "%d of %d tokens each are more than the %v of %d, which they are part of (%d fit)", workload.Images, each, costmodel.Setting{Field: "seq"}, workload.Seq, workload.Seq/each)
		}
	}
	return nil
}

// checkStreams refuses token streams that are too long for the batch.
func checkStreams(graph *modelgraph.Graph, workload *costmodel.Workload) error {
	for i := range graph.Layers {
		stream := graph.Layers[i].Stream
		tokens, field, value := float64(layers.MicroBatch(workload))*float64(layers.ImageTokens(stream, workload)), "batch", workload.Batch
		if stream.Kind == modelgraph.Image {
			tokens, field, value = tokens*float64(workload.Images), "images", workload.Images
		}
		if tokens > maxTokens {
			return refuse(field, value, "layer %q would see %.3g tokens, more than 2^32", graph.Layers[i].Name, tokens)
		}
	}
	return nil
}
