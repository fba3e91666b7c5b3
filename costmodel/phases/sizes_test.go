package phases

import (
	"strings"
	"testing"
)

// TestSizes: sizes as diffusers changes them, and refusals.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		class                 string
		height, width, frames int64
		want                  [3]int64
		words                 string
	}{
		{"FluxPipeline", 1023, 1024, 0, [3]int64{1008, 1024, 1}, "height 1023 is planned as 1008"},
		{"QwenImagePipeline", 1328, 1335, 0, [3]int64{1328, 1328, 1}, "width 1335 is planned as 1328"},
		{"FluxKontextPipeline", 1024, 1024, 0, [3]int64{1024, 1024, 1}, ""},
		{"FluxKontextPipeline", 512, 1024, 0, [3]int64{720, 1440, 1}, "height 512 is planned as 720"},
		{"WanPipeline", 480, 832, 80, [3]int64{480, 832, 81}, "frames 80 is planned as 81"},
		{"WanPipeline", 480, 832, 83, [3]int64{480, 832, 81}, "frames 83 is planned as 81"},
		{"CogVideoXPipeline", 480, 720, 52, [3]int64{480, 720, 49}, "frames 52 is planned as 49"},
		{"HunyuanVideoPipeline", 720, 1280, 60, [3]int64{720, 1280, 57}, "frames 60 is planned as 57"},
		{"FluxPipeline", 1024, 768, 0, [3]int64{1024, 768, 1}, ""},
		{"WanPipeline", 488, 832, 0, [3]int64{}, "height 488 is no multiple of 16, which the pipeline wants: 480 and 496 are"},
		{"StableDiffusion3Pipeline", 1023, 1024, 0, [3]int64{}, "1008 and 1024 are"},
		{"StableDiffusionXLPipeline", 1028, 1024, 0, [3]int64{}, "no multiple of 8, which the pipeline wants: 1024 and 1032 are"},
		{"FluxPipeline", 1024, 1024, 5, [3]int64{}, "makes pictures"},
	} {
		work, _, notes, err := Workload{Height: c.height, Width: c.width, Frames: c.frames}.sized(c.class)
		said := strings.Join(notes, "\n")
		if err != nil {
			said = err.Error()
		}
		if got := [3]int64{work.Height, work.Width, work.Frames}; c.want != [3]int64{} && (err != nil || got != c.want) || (c.words == "") != (said == "") || !strings.Contains(said, c.words) {
			t.Errorf("%s %d %d %d: %v, want %v; %q, want %q", c.class, c.height, c.width, c.frames, got, c.want, said, c.words)
		}
	}
}
