package phases

// pools are the least and most that PyTorch's caching allocator reserves beyond the peak, by way of
// offloading, as parts of the peak's phase without weights. Measured on an H200 with torch 2.11,
// diffusers 0.42.1 and xDiT 0.7 (fixtures/measured/diffusion_pipes_h200.jsonl, xdit_h200.jsonl;
// TestPoolMeasured).
var pools = map[string][2]float64{
	"":           {0.15, 1.7},
	"model":      {0.45, 3.45},
	"sequential": {0.05, 0.07},
	"group":      {1.15, 1.2},
}
