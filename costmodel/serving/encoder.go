package serving

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/gguf"
)

// Encoder is an encoder of images in a file of its own (mmproj). It is on one device.
type Encoder struct {
	Projector string
	Weights   int64 // bytes on CUDA
	// Compute is the buffer for the image that llama-server starts with (clip.cpp, warmup), and Larger
	// what the largest image takes in addition. If the projector is unknown, Larger is as much again.
	Compute, Larger int64
	Judged          bool  // its buffer was compared with llama.cpp's own figure
	Tokens          int64 // patches of that image
}

// tower are the sizes of an encoder.
type tower struct {
	*graph

	file                                 *gguf.File
	projector                            string
	width, feed, heads, blocks, text     int64
	patch, side, grid, merge, window, n  int64 // n: patches
	rms, gated, joined, flash, pre, post bool
	deep                                 []bool
	raw, leaf                            *value
	kernelSize                           int64 // bytes of an element of a convolution's columns
}

// projectors are those whose passes are built here, as tools/mtmd/models has them.
var projectors = map[string]func(tower *tower) *value{
	"gemma3": (*tower).gemma3, "idefics3": (*tower).idefics3, "internvl": (*tower).internVL, "mlp": (*tower).llava, "pixtral": (*tower).pixtral,
	"qwen2vl_merger": (*tower).qwen2VL, "qwen2.5vl_merger": (*tower).qwen2VL, "qwen3vl_merger": (*tower).qwen3VL,
}

// EncoderFromGGUF returns what an encoder's memory depends on. Errors are [*modelgraph.SyntaxError]:
// no encoder of images, or sizes that it does not have.
func EncoderFromGGUF(file *gguf.File) (*Encoder, error) {
	fault := func(key, format string, args ...any) error {
		return &modelgraph.SyntaxError{File: file.Path, Place: key, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case file.Architecture != "clip":
		return nil, fault("general.architecture", "%q is no encoder of images (clip)", file.Architecture)
	case file.Number("has_vision_encoder", 0) == 0 || file.Number("has_audio_encoder", 0) != 0 || file.Number("has_gen_audio_encoder", 0) != 0:
		return nil, fault("clip.has_audio_encoder", "the buffers of encoders of sound are not counted here: leave the file out, and set memory aside with --reserve")
	}
	encoder := &Encoder{}
	for i := range file.Tensors {
		encoder.Weights += onCUDA(&file.Tensors[i])
	}
	tower, err := newTower(file, fault)
	if err != nil {
		return nil, err
	}
	encoder.Projector = tower.projector
	encoder.Compute, encoder.Judged = tower.compute(0)
	encoder.Larger = encoder.Compute
	if encoder.Judged {
		tower.resize(tower.largest())
		most, _ := tower.compute(0)
		encoder.Larger = max(0, most-encoder.Compute)
	}
	return encoder, nil
}

// flashWidths are the widths of heads that CUDA's flash attention has without grouped queries
// (fattn.cu, ggml_cuda_get_best_fattn_kernel).
var flashWidths = []int64{40, 64, 72, 80, 96, 112, 128, 256}

// newTower reads the sizes of an encoder.
func newTower(file *gguf.File, fault func(key, format string, args ...any) error) (*tower, error) {
	number := func(key string) int64 { return file.Number("vision."+key, 0) }
	tower := &tower{
		graph: &graph{seen: map[*value]bool{}}, file: file, projector: file.Text("projector_type"),
		width: number("embedding_length"), feed: number("feed_forward_length"), heads: number("attention.head_count"), blocks: number("block_count"),
		text: number("projection_dim"), patch: number("patch_size"), side: number("image_size"), merge: 1, window: number("n_wa_pattern"), kernelSize: 2,
	}
	if tower.projector == "" {
		tower.projector = file.Text("vision.projector_type")
	}
	for _, key := range []struct {
		name       string
		size, most int64
	}{
		{"embedding_length", tower.width, 1 << 16},
		{"feed_forward_length", tower.feed, 1 << 16},
		{"attention.head_count", tower.heads, 1 << 10},
		{"block_count", tower.blocks, maxBlocks},
		{"patch_size", tower.patch, 1 << 10},
		{"image_size", tower.side, 1 << 14},
		{"projection_dim", max(1, tower.text), 1 << 16},
	} {
		if key.size < 1 || key.size > key.most {
			return nil, fault("clip.vision."+key.name, "%d is not between 1 and %d", key.size, key.most)
		}
	}
	tower.tensors()
	tower.flash = slices.Contains(flashWidths, tower.width/tower.heads)
	tower.image()
	const most = 1 << 10 // patches of a side
	if tower.grid < tower.merge || tower.grid > most || tower.merge > most/64 {
		return nil, fault("clip.vision.image_size", "%d is no side of an image of patches of %d, of which %d lie together", tower.side, tower.patch, tower.merge)
	}
	return tower, nil
}

// tensors finds the form of the encoder by the names of its tensors.
func (tower *tower) tensors() {
	tower.deep = make([]bool, tower.blocks)
	for i := range tower.file.Tensors {
		tensor := &tower.file.Tensors[i]
		switch name := tensor.Name; {
		case name == "v.patch_embd.weight" && tensor.DType == modelgraph.BF16:
			tower.kernelSize = 4
		case name == "v.pre_ln.weight":
			tower.pre = true
		case name == "v.post_ln.weight":
			tower.post = true
		case strings.HasPrefix(name, "v.blk.0.ffn_gate."):
			tower.gated = true
		case strings.HasPrefix(name, "v.blk.0.attn_qkv."):
			tower.joined = true
		case strings.HasPrefix(name, "v.deepstack."):
			var block int64
			if _, err := fmt.Sscanf(name, "v.deepstack.%d.", &block); err == nil && block >= 0 && block < tower.blocks {
				tower.deep[block] = true
			}
		}
	}
}

// image sets the image that llama-server starts with (clip.cpp, load_hparams).
func (tower *tower) image() {
	number := func(key string, absent int64) int64 { return max(1, tower.file.Number("vision."+key, absent)) }
	switch tower.projector {
	case "gemma3":
		tower.merge = number("projector.scale_factor", 4)
	case "idefics3", "internvl":
		tower.merge = number("projector.scale_factor", 1)
	case "pixtral":
		tower.merge, tower.rms = number("spatial_merge_size", 1), true
		tower.side = 16 * tower.patch * tower.merge
	case "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger":
		tower.merge, tower.rms = number("spatial_merge_size", 2), tower.projector == "qwen2.5vl_merger"
		tower.side = 46 * tower.patch * tower.merge
	}
	tower.resize(tower.side)
}

// largest is the side of a square image with the most tokens (clip.cpp, set_limit_image_tokens).
// Projectors of images of one size cut larger ones.
func (tower *tower) largest() int64 {
	switch tower.projector {
	case "pixtral":
		return 32 * tower.patch * tower.merge
	case "qwen2vl_merger", "qwen2.5vl_merger", "qwen3vl_merger":
		return 64 * tower.patch * tower.merge
	}
	return tower.side
}

func (tower *tower) resize(side int64) {
	tower.side, tower.grid = side, side/tower.patch
	tower.n = tower.grid * tower.grid
}

// compute is the buffer of a pass, and whether such passes were compared. An unknown projector has
// that of its blocks alone.
func (tower *tower) compute(alignment int64) (size int64, judged bool) {
	const ofCUDA = 128
	if alignment == 0 {
		alignment = ofCUDA
	}
	tower.graph = &graph{seen: map[*value]bool{}}
	const colours, fp32 = 3, 4
	tower.raw = tower.input(fp32 * colours * tower.side * tower.side)
	build, judged := projectors[tower.projector]
	if !judged {
		tower.expand(tower.layers(tower.patches(), tower.n, nil))
	} else {
		tower.expand(build(tower))
	}
	var inputs []*value
	for _, node := range tower.nodes {
		for _, operand := range node.from {
			if operand.copied && operand != tower.leaf && !slices.Contains(inputs, operand) {
				inputs = append(inputs, operand)
			}
		}
	}
	tower.nodes = append(inputs, tower.nodes...)
	var leaves []*value
	if tower.leaf != nil {
		leaves = append(leaves, tower.leaf)
	}
	return tower.run(leaves, alignment, func(*value, *arena) {}), judged
}

// classed reports a token for the whole image.
func (tower *tower) classed() bool { return rowCount(tower.file, "v.class_embd") > 0 }

// fits reports a table of positions for as many patches as the image has.
func (tower *tower) fits() bool { return rowCount(tower.file, "v.position_embd.weight") == tower.n }
