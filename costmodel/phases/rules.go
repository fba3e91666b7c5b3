package phases

// rule is a pipeline class's own behaviour.
type rule struct {
	height, width, frames, steps, text int64
	// guided: the prompt and its negative are denoised, in one batch or, if apart, one after the other.
	guided, apart bool
	// packed: squares of two latents are tokens before the transformer sees them.
	packed bool
	// rows: xDiT splits whole rows of tokens (runtime_state.py: _calc_patches_metadata,
	// latents_height % num_sp_patches). Others pad the tokens.
	rows bool
	// whole: shares of all tokens are chunked and gathered again, so they must be
	// as large as each other (examples/hunyuan_video_usp_example.py).
	whole bool
	// cut: sides between tokens are made smaller, with a warning (check_inputs, prepare_latents);
	// else they are refused. side is their multiple, or 0 for a token's.
	cut  bool
	side int64
	area int64 // pixels that sides are brought to
	// given are the frames that the autoencoder encodes first: a picture, or all of a video that
	// begins with one. joined: the transformer gets their tokens with the new ones.
	given  int64
	joined bool
	// raises: the autoencoder encodes in single precision if its config says force_upcast, the
	// default (pipeline_stable_diffusion_xl_img2img.py: prepare_latents).
	raises bool
	// nearest: frames between latents are rounded to the nearest (pipeline_wan.py), else down.
	nearest bool
}

// allFrames: the rest of a video that begins with a picture is encoded too, as zeros.
const allFrames = -1

// rules are the defaults of __call__ and of the components, by class (diffusers/pipelines, 0.42).
var rules = map[string]rule{
	"CogVideoXImageToVideoPipeline":    {height: 480, width: 720, frames: 49, steps: 50, text: 226, guided: true, rows: true, given: 1},
	"CogVideoXPipeline":                {height: 480, width: 720, frames: 49, steps: 50, text: 226, guided: true, rows: true},
	"FluxControlPipeline":              {height: 1024, width: 1024, frames: 1, steps: 28, text: 512, packed: true, rows: true, cut: true, given: 1},
	"FluxFillPipeline":                 {height: 1024, width: 1024, frames: 1, steps: 50, text: 512, packed: true, rows: true, cut: true, given: 1},
	"FluxKontextPipeline":              {height: 1024, width: 1024, frames: 1, steps: 28, text: 512, packed: true, rows: true, cut: true, given: 1, joined: true, area: 1 << 20},
	"FluxPipeline":                     {height: 1024, width: 1024, frames: 1, steps: 28, text: 512, packed: true, rows: true, cut: true},
	"HunyuanVideoPipeline":             {height: 720, width: 1280, frames: 129, steps: 50, text: 256, whole: true},
	"QwenImagePipeline":                {height: 1024, width: 1024, frames: 1, steps: 50, text: 512, packed: true, guided: true, apart: true, cut: true},
	"StableDiffusion3Pipeline":         {height: 1024, width: 1024, frames: 1, steps: 28, text: 333, guided: true, rows: true},
	"StableDiffusionInpaintPipeline":   {height: 512, width: 512, frames: 1, steps: 50, text: 77, guided: true, side: 8, given: 1},
	"StableDiffusionPipeline":          {height: 512, width: 512, frames: 1, steps: 50, text: 77, guided: true, side: 8},
	"StableDiffusionXLImg2ImgPipeline": {height: 1024, width: 1024, frames: 1, steps: 50, text: 77, guided: true, side: 8, given: 1, raises: true},
	"StableDiffusionXLInpaintPipeline": {height: 1024, width: 1024, frames: 1, steps: 50, text: 77, guided: true, side: 8, given: 1, raises: true},
	"StableDiffusionXLPipeline":        {height: 1024, width: 1024, frames: 1, steps: 50, text: 77, guided: true, side: 8},
	"WanImageToVideoPipeline":          {height: 480, width: 832, frames: 81, steps: 50, text: 512, guided: true, apart: true, nearest: true, given: allFrames},
	"WanPipeline":                      {height: 480, width: 832, frames: 81, steps: 50, text: 512, guided: true, apart: true, nearest: true},
}
