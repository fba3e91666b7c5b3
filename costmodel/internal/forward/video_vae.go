package forward

// codec is an autoencoder of videos.
type codec struct {
	first          string // its first convolution, in encoder and decoder
	encode, decode func(picture) *value
	join           func([]*value) // what becomes of videos that are decoded one by one
}

// video is encode or decode of such an autoencoder, the latter video by video if it slices.
func (t *tape) video(root module, call Call, codec codec) {
	frames := max(1, call.Frames)
	if !call.Decode {
		pixels := t.picture(picture{batch: call.Batch, channels: root.inward("encoder." + codec.first), frames: frames, height: call.Height, width: call.Width})
		t.drop(codec.encode(pixels), pixels.value)
		return
	}
	latents := t.picture(picture{batch: call.Batch, channels: root.inward("decoder." + codec.first), frames: latentFrames(frames), height: call.Height / latentRatio, width: call.Width / latentRatio})
	part := latents
	if call.Slicing {
		part.batch = 1
	}
	var done []*value
	for range latents.batch / part.batch {
		done = append(done, codec.decode(part))
	}
	codec.join(done)
	t.drop(latents.value)
}
