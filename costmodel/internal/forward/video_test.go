package forward

import "testing"

const (
	wanVAE     = `{"_class_name":"AutoencoderKLWan"}`
	qwenVAE    = `{"_class_name":"AutoencoderKLQwenImage"}`
	cogVideoXs = `{"_class_name":"AutoencoderKLCogVideoX"}`
	hunyuans   = `{"_class_name":"AutoencoderKLHunyuanVideo"}`
)

// TestMeasuredVideo: as [TestMeasured], of autoencoders that go through a video.
func TestMeasuredVideo(t *testing.T) {
	for _, c := range []struct {
		config string
		call   Call
		want   int64
	}{
		{wanVAE, Call{Batch: 1, Height: 480, Width: 832, Frames: 81, Decode: true}, 4709639680},
		{wanVAE, Call{Batch: 1, Height: 480, Width: 480, Frames: 33, Decode: true}, 2648088064},
		{wanVAE, Call{Batch: 1, Height: 480, Width: 832, Frames: 33, Decode: true, Tiling: true}, 852519936},
		{wanVAE, Call{Batch: 1, Height: 720, Width: 1280, Frames: 9, Decode: true}, 10440179200},
		{qwenVAE, Call{Batch: 1, Height: 1024, Width: 1024, Frames: 1, Decode: true}, 4436405248},
		{qwenVAE, Call{Batch: 1, Height: 1328, Width: 1328, Frames: 1, Decode: true}, 7461231616},
		{cogVideoXs, Call{Batch: 1, Height: 480, Width: 720, Frames: 49, Decode: true}, 15831130112},
		{cogVideoXs, Call{Batch: 1, Height: 480, Width: 480, Frames: 25, Decode: true}, 10558287360},
		{cogVideoXs, Call{Batch: 1, Height: 480, Width: 720, Frames: 49, Decode: true, Tiling: true}, 4051767808},
		{cogVideoXs, Call{Batch: 2, Height: 480, Width: 720, Frames: 17, Decode: true, Slicing: true}, 15864238592},
		{hunyuans, Call{Batch: 1, Height: 320, Width: 512, Frames: 17, Decode: true}, 9495517696},
		{hunyuans, Call{Batch: 1, Height: 320, Width: 320, Frames: 33, Decode: true}, 5955014656},
		{hunyuans, Call{Batch: 1, Height: 544, Width: 960, Frames: 33, Decode: true, Tiling: true}, 3915793920},
	} {
		judge(t, c.config, c.call, c.want, 2)
	}
}
