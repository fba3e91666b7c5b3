package forward

import (
	"testing"

	"github.com/devmap-dev/devmap/modelgraph/diffusers"
)

const (
	fluxVAE  = `{"_class_name":"AutoencoderKL","down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],"block_out_channels":[128,256,512,512],"layers_per_block":2,"latent_channels":16,"use_quant_conv":false,"use_post_quant_conv":false,"sample_size":1024}`
	sdxlUNet = `{"_class_name":"UNet2DConditionModel","down_block_types":["DownBlock2D","CrossAttnDownBlock2D","CrossAttnDownBlock2D"],"up_block_types":["CrossAttnUpBlock2D","CrossAttnUpBlock2D","UpBlock2D"],"block_out_channels":[320,640,1280],"transformer_layers_per_block":[1,2,10],"cross_attention_dim":2048,"attention_head_dim":[5,10,20],"use_linear_projection":true,"addition_embed_type":"text_time","addition_time_embed_dim":256,"projection_class_embeddings_input_dim":2816}`
)

// TestMeasured: peaks of a forward above what was there before it, on an H200
// (torch 2.11, diffusers 0.42.1, cuDNN 9.19).
func TestMeasured(t *testing.T) {
	for _, c := range []struct {
		config string
		call   Call
		want   int64
	}{
		{fluxVAE, Call{Batch: 1, Height: 1024, Width: 1024, Decode: true}, 2552758272},
		{fluxVAE, Call{Batch: 1, Height: 2048, Width: 2048, Decode: true}, 10204741632},
		{fluxVAE, Call{Batch: 1, Height: 2048, Width: 2048, Decode: true, Tiling: true, Tile: 1024}, 2577399808},
		{fluxVAE, Call{Batch: 1, Height: 512, Width: 512, Decode: true}, 639762432},
		{fluxVAE, Call{Batch: 1, Height: 768, Width: 1360, Decode: true}, 2543843328},
		{fluxVAE, Call{Batch: 2, Height: 768, Width: 768, Decode: true}, 2417099264},
		{fluxVAE, Call{Batch: 4, Height: 512, Width: 512, Decode: true, Slicing: true}, 645922816},
		{fluxVAE, Call{Batch: 1, Height: 1536, Width: 1536, Decode: true, Tiling: true, Tile: 1024}, 2554331136},
		{fluxVAE, Call{Batch: 1, Height: 1280, Width: 1280, Decode: true}, 3987505152},
		{fluxVAE, Call{Batch: 1, Height: 1024, Width: 1024}, 1617199616},
		{fluxVAE, Call{Batch: 1, Height: 768, Width: 512}, 606634496},
		{sdxlUNet, Call{Batch: 2, Height: 1024, Width: 1024, Text: 77}, 342746624},
		{sdxlUNet, Call{Batch: 1, Height: 1024, Width: 1024, Text: 77}, 174519808},
		{sdxlUNet, Call{Batch: 2, Height: 768, Width: 768, Text: 77}, 196380672},
		{sdxlUNet, Call{Batch: 2, Height: 640, Width: 1536, Text: 77}, 321521664},
	} {
		judge(t, c.config, c.call, c.want, 2)
	}
}

// TestMeasuredSingle: as [TestMeasured], in single precision.
func TestMeasuredSingle(t *testing.T) {
	const sdxlVAE = `{"_class_name":"AutoencoderKL","down_block_types":["DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D","DownEncoderBlock2D"],"up_block_types":["UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D","UpDecoderBlock2D"],"block_out_channels":[128,256,512,512],"layers_per_block":2,"latent_channels":4,"sample_size":1024}`
	for _, c := range []struct {
		config string
		call   Call
		want   int64
	}{
		{sdxlVAE, Call{Batch: 1, Height: 1024, Width: 1024, Decode: true}, 5119672320},
		{sdxlVAE, Call{Batch: 1, Height: 768, Width: 768, Decode: true}, 2871558656},
		{wanVAE, Call{Batch: 1, Height: 480, Width: 832, Frames: 17, Decode: true}, 9089759744},
	} {
		judge(t, c.config, c.call, c.want, 4)
	}
}

// judge checks a forward's peak against a measured one within 1 %; bytes are an element's.
func judge(t *testing.T, config string, call Call, want, bytes int64) {
	t.Helper()
	graph, err := diffusers.FromConfig("config.json", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	cost, err := Of(graph, call, bytes)
	if err != nil {
		t.Error(err)
		return
	}
	diff := float64(cost.PeakBytes-want) / float64(want)
	t.Logf("%s %+v: %d, measured %d (%+.3f %%) %.3g FLOP", graph.Class, call, cost.PeakBytes, want, 100*diff, cost.FLOPs)
	if diff > 0.01 || diff < -0.01 {
		t.Errorf("%s %+v: %d, measured %d (%+.3f %%)", graph.Class, call, cost.PeakBytes, want, 100*diff)
	}
}
