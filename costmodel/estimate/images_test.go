package estimate_test

import (
	"strings"
	"testing"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/costmodel/estimate"
	"github.com/devmap-dev/devmap/costmodel/estimate/internal/layers"
)

const (
	anySize = `{"model_type": "qwen2_5_vl", "num_hidden_layers": 1, "vision_config": {"depth": 1}}`
	tiles   = `{"model_type": "internvl", "text_config": {"model_type": "qwen2", "num_hidden_layers": 1}, "vision_config": {"num_hidden_layers": 1}}`
	noTower = `{"model_type": "qwen2", "num_hidden_layers": 1}`
)

// TestImageWorkloads: image tokens are part of the sequence; errors contain the numbers.
func TestImageWorkloads(t *testing.T) {
	for _, c := range []struct {
		config            string
		images, size, seq int64
		want              string // "": taken
	}{
		{anySize, 1, 0, 2048, ""},
		{anySize, 8, 448, 2048, ""},
		{anySize, 2, 0, 2048, "images: 2 of 1280 tokens each are more than the seq of 2048, which they are part of (1 fit)"},
		{anySize, 9, 448, 2048, "images: 9 of 256 tokens each are more than the seq of 2048, which they are part of (8 fit)"},
		{anySize, 0, 448, 2048, "image_size: there is no image without images"},
		{anySize, 1, -1, 2048, "image_size: -1 is not a side from 1 to 65536 pixels"},
		{anySize, 1, 1 << 20, 2048, "image_size: 1048576 is not a side from 1 to 65536 pixels"},
		{tiles, 8, 0, 2048, ""},
		{tiles, 9, 0, 2048, "images: 9 of 256 tokens each are more than the seq of 2048, which they are part of (8 fit)"},
		{tiles, 1, 896, 2048, "image_size: the model's images have one size; a larger picture is cut into tiles, and images counts tiles"},
		{noTower, 1, 0, 2048, "images: the model has no vision tower, so it reads no images"},
	} {
		w := costmodel.Workload{Mode: costmodel.Train, Batch: 1, Seq: c.seq, Images: c.images, ImageSize: c.size, Optimizer: costmodel.AdamW}
		g := fromConfig(t, c.config)
		w, err := estimate.Resolve(g, w)
		if err == nil {
			_, err = estimate.Table(g, w)
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d images of %d px in %d tokens: %q, want %q", c.images, c.size, c.seq, got, c.want)
		}
	}
}

// TestImagesAlone: a sequence of a vision tower without a text model is one image.
func TestImagesAlone(t *testing.T) {
	for config, want := range map[string]int64{`{"model_type": "siglip_vision_model", "num_hidden_layers": 1}`: 1, anySize: 0, noTower: 0} {
		for mode, images := range map[costmodel.Mode]int64{costmodel.Infer: want, costmodel.Load: 0} {
			if workload, err := estimate.Resolve(fromConfig(t, config), costmodel.Workload{Mode: mode}); err != nil || workload.Images != images {
				t.Errorf("%s, %s: %d images, want %d: %v", config, mode, workload.Images, images, err)
			}
		}
	}
}

// TestImageTokens: sides are rounded to whole tokens.
func TestImageTokens(t *testing.T) {
	g := fromConfig(t, anySize)
	for size, want := range map[int64]int64{0: 1280, 1: 1, 28: 1, 41: 1, 42: 4, 448: 256, 455: 256, 896: 1024} {
		found := false
		for i := range g.Layers {
			if strings.HasSuffix(g.Layers[i].Name, "merger.mlp.2") {
				found = true
				if got := layers.ImageTokens(g.Layers[i].Stream, &costmodel.Workload{ImageSize: size}); got != want {
					t.Errorf("%d pixels: %d tokens, want %d", size, got, want)
				}
			}
		}
		if !found {
			t.Fatal("no merger")
		}
	}
	// A bound of the area, as smart_resize keeps it: alone, and of a square.
	for _, c := range []struct{ size, area, want int64 }{{0, 28 * 28 * 100, 100}, {0, 1, 1}, {0, 1_003_520, 1280}, {896, 28 * 28 * 256, 256}, {896, 28 * 28 * 250, 225}, {448, 28 * 28 * 1280, 256}} {
		for i := range g.Layers {
			if !strings.HasSuffix(g.Layers[i].Name, "merger.mlp.2") {
				continue
			}
			if got := layers.ImageTokens(g.Layers[i].Stream, &costmodel.Workload{ImageSize: c.size, MaxPixels: c.area}); got != c.want {
				t.Errorf("%d pixels within %d: %d tokens, want %d", c.size, c.area, got, c.want)
			}
		}
	}
}
