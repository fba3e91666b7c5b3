package hf

import "github.com/devmap-dev/devmap/modelgraph"

// FromConfig builds the graph that a config.json describes. file is in errors and names the model
// if the config does not. A release of Transformers, such as 5.20, replaces the config's.
func FromConfig(file string, data []byte, transformers ...string) (*modelgraph.Graph, error) {
	graph, _, cfg, err := fromConfig(file, data, transformers...)
	if err == nil {
		graph, err = cfg.checked(graph)
	}
	if err != nil && component(cfg) != "" {
		return fromComponent(cfg, file, data)
	}
	if cfg == nil {
		return nil, err
	}
	if graph, err = byRelease(graph, cfg, err, modelName(cfg, file), file); err != nil {
		return nil, err
	}
	graph.Config = data
	if graph, err = ownHead(graph, cfg); err != nil {
		return nil, err
	}
	return asStored(graph, cfg)
}
