package diffusers

import (
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf"
)

// readers add the modules of a class, in the order in which diffusers
// registers them.
var readers = map[string]func(*config, module){
	"AutoencoderKL":                  autoencoderKL,
	"AutoencoderKLCogVideoX":         autoencoderCogVideoX,
	"AutoencoderKLHunyuanVideo":      autoencoderHunyuanVideo,
	"AutoencoderKLQwenImage":         autoencoderQwenImage,
	"AutoencoderKLWan":               autoencoderWan,
	"CogVideoXTransformer3DModel":    cogVideoX,
	"FluxTransformer2DModel":         flux,
	"HunyuanVideoTransformer3DModel": hunyuanVideo,
	"QwenImageTransformer2DModel":    qwenImage,
	"SD3Transformer2DModel":          stableDiffusion3,
	"UNet2DConditionModel":           unet,
	"WanTransformer3DModel":          wan,
}

// FromConfig returns the graph of a component from the text of its config.json; file names it in
// errors. Weights are BF16, as in diffusers' own pages, because a config does not say. A class
// without a reader is read from the table of diffusers. Its forward is then not known.
func FromConfig(file string, data []byte) (*modelgraph.Graph, error) {
	if class := classNamed(data); class != "" && readers[class] == nil {
		graph, err := hf.FromConfig(file, data)
		if err == nil {
			graph.Name = filepath.Base(filepath.Dir(file))
		}
		return graph, err
	}
	cfg, err := parseConfig(file, data)
	if err != nil {
		return nil, err
	}
	tree := new(tree)
	readers[cfg.class](cfg, module{tree: tree})
	if cfg.fault != nil {
		return nil, cfg.fault
	}
	graph, err := tree.graph(filepath.Base(filepath.Dir(file)))
	if err != nil {
		return nil, err
	}
	graph.Class, graph.Family, graph.Source = cfg.class, "diffusers", file
	graph.Config, graph.Warnings = data, cfg.warnings
	return graph, nil
}
