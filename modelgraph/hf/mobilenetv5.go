package hf

import "github.com/devmap-dev/devmap/modelgraph"

// mobileNet builds timm's mobilenetv5_300m_enc (timm/models/mobilenetv5.py, _gen_mobilenet_v5), the
// tower of Gemma 3n, which no config changes. The number of tokens changes with the resolution.
type mobileNet struct {
	*builder
	path  string
	width int64 // channels so far
	side  int64 // of the square that they have
}

// mobileNetSide is the side of an image; the processor resizes every image to it.
const mobileNetSide = 768

// conv adds a convolution without bias; in groups of one channel where each is.
func (net *mobileNet) conv(name string, out, kernel int64, each bool) {
	in := net.width
	if each {
		in = 1
	}
	op := modelgraph.Conv{In: in, Out: out, Kernel: kernel * kernel}
	net.onSide(func() {
		net.hidden = net.add(dot(net.path, name), op, []string{net.hidden}, tensor("weight", out, in, kernel, kernel)).Name
	})
	net.width = out
}

func (net *mobileNet) norm(name string) {
	net.onSide(func() {
		net.hidden = net.add(dot(net.path, name), modelgraph.Norm{Dim: net.width}, []string{net.hidden}, tensor("weight", net.width)).Name
	})
}

func (net *mobileNet) onSide(f func()) { net.on(imageStream(net.side*net.side), f) }

// scale is a vector that multiplies the block's result.
func (net *mobileNet) scale(name string) {
	net.inert(dot(net.path, name), tensor("gamma", net.width))
}

// edge is EdgeResidual: a convolution to more channels, and one back.
func (net *mobileNet) edge(name string, inner, out int64) {
	net.conv(dot(name, "conv_exp"), inner, 3, false)
	net.norm(dot(name, "bn1"))
	net.conv(dot(name, "conv_pwl"), out, 1, false)
	net.norm(dot(name, "bn2"))
}

// inverted is UniversalInvertedResidual: convolutions of each channel before and between the two
// that mix them, where start and middle are not 0.
func (net *mobileNet) inverted(name string, start, middle, times, out int64) {
	if start > 0 {
		net.conv(dot(name, "dw_start.conv"), net.width, start, true)
		net.norm(dot(name, "dw_start.bn"))
	}
	net.conv(dot(name, "pw_exp.conv"), times*net.width, 1, false)
	net.norm(dot(name, "pw_exp.bn"))
	if middle > 0 {
		net.conv(dot(name, "dw_mid.conv"), net.width, middle, true)
		net.norm(dot(name, "dw_mid.bn"))
	}
	net.conv(dot(name, "pw_proj.conv"), out, 1, false)
	net.norm(dot(name, "pw_proj.bn"))
	net.scale(dot(name, "layer_scale"))
}

// attend is MobileAttention: one KV head; with shrunk, of a picture half as wide and high.
func (net *mobileNet) attend(name string, heads, width int64, shrunk bool) {
	net.norm(dot(name, "norm"))
	q := heads * width
	params := []modelgraph.Tensor{tensor("query.proj.weight", q, net.width, 1, 1)}
	for _, of := range []string{"key", "value"} {
		if shrunk {
			params = append(params, tensor(dot(of, "down_conv.weight"), net.width, 1, 3, 3), tensor(dot(of, "norm.weight"), net.width))
		}
		params = append(params, tensor(dot(of, "proj.weight"), width, net.width, 1, 1))
	}
	params = append(params, tensor("output.proj.weight", net.width, q, 1, 1))
	op := modelgraph.Attention{Dim: net.width, Heads: heads, KVHeads: 1, HeadDim: width, Bidirectional: true}
	net.onSide(func() {
		net.hidden = net.add(dot(net.path, name, "attn"), op, []string{net.hidden}, params...).Name
	})
	net.scale(dot(name, "layer_scale"))
}

// addMobileNet adds the tower as one unit, and names its result.
func addMobileNet(modules *builder, path string) string {
	net := &mobileNet{builder: modules, path: path, width: 3, side: mobileNetSide / 2}
	modules.hidden = ""
	modules.unit(path, func() {
		net.path = dot(path, "timm_model")
		net.stem()
		net.stages()
		net.fuse()
	})
	return modules.hidden
}

func (net *mobileNet) stem() {
	const width = 64
	net.onSide(func() {
		net.hidden = net.add(dot(net.path, "conv_stem.conv"), modelgraph.Conv{In: net.width, Out: width, Kernel: 9}, nil,
			tensor("weight", width, net.width, 3, 3), tensor("bias", width)).Name
	})
	net.width = width
	net.norm("conv_stem.bn")
}

func (net *mobileNet) stages() {
	block := func(stage, at int64) string { return indexed(indexed("blocks", stage), at) }
	net.side /= 2
	net.edge(block(0, 0), 4*net.width, 128)
	net.edge(block(0, 1), 4*net.width, 128)
	net.edge(block(0, 2), 4*net.width, 128)
	net.side /= 2
	net.inverted(block(1, 0), 3, 5, 6, 256)
	for i, start := range []int64{5, 3, 5, 3} {
		net.inverted(block(1, int64(i)+1), start, 0, 4, 256)
	}
	net.side /= 2
	net.inverted(block(2, 0), 5, 5, 6, 640)
	for i := range int64(7) {
		net.inverted(block(2, i+1), 5, 0, 4, 640)
	}
	net.inverted(block(2, 8), 0, 0, 1, 640)
	for i := int64(9); i < 37; i += 2 {
		net.attend(block(2, i), 12, 64, true)
		net.inverted(block(2, i+1), 0, 0, 2, 640)
	}
	net.side /= 2
	net.inverted(block(3, 0), 5, 5, 6, 1280)
	for i := int64(1); i < 39; i += 2 {
		net.attend(block(3, i), 16, 96, false)
		net.inverted(block(3, i+1), 0, 0, 2, 1280)
	}
}

// fuse joins the last two stages, at a sixteenth of the image's side.
func (net *mobileNet) fuse() {
	const from, out = 640 + 1280, 2048
	net.side = mobileNetSide / 16
	net.width = from
	net.conv("msfa.ffn.pw_exp.conv", 2*from, 1, false)
	net.norm("msfa.ffn.pw_exp.bn")
	net.conv("msfa.ffn.pw_proj.conv", out, 1, false)
	net.norm("msfa.ffn.pw_proj.bn")
	net.side = 16 // pooled
	net.norm("msfa.norm")
}
