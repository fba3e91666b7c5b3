package diffusers

import (
	"path/filepath"

	"github.com/devmap-dev/devmap/modelgraph"
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

// FromConfig makes the graph of a component from the text of its config.json;
// file names it in errors, which are [*modelgraph.SyntaxError]. Weights are
// BF16, as diffusers' own pages load them: a config does not say.
func FromConfig(file string, data []byte) (*modelgraph.Graph, error) {
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
