package forward

// tiles is tiled_decode: tiles of 256 pixels, 192 apart.
func (run *causalVAE) tiles(latents picture) *value {
	const side, step = 256 / latentRatio, 192 / latentRatio
	var rows []*value
	for _, tile := range latents.tiles(side, side, step, step) {
		run.clear()
		tile.frames = 1
		var time []*value
		total := int64(0)
		var last *value
		for range latents.frames {
			latent := run.convolve(run.root, "post_quant_conv", tile, nil)
			made := run.frame(latent)
			run.become(&last, latent.value)
			time = append(time, made.value)
			total += made.bytes
		}
		rows = append(rows, run.alloc(total))
		run.drop(time...)
		run.drop(last)
	}
	run.clear()
	pixels := run.new(latents.batch * run.root.out("decoder.conv_out") * (4*(latents.frames-1) + 1) * latents.height * latentRatio * latents.width * latentRatio)
	joined := run.alloc(pixels.bytes)
	run.drop(pixels)
	clamped := run.alloc(joined.bytes)
	run.drop(joined)
	run.drop(rows...)
	return clamped
}
