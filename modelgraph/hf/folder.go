package hf

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph"
	"github.com/devmap-dev/devmap/modelgraph/hf/internal/paths"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// FromCheckpoint reads a Hugging Face folder: config.json and the headers of safetensors files, or
// one of the two. The parameters get the types, sizes and places that the files give them
// ([modelgraph.Tensor.Parts]). Tensors without a module, and parameters without a file, are
// warnings.
//
// Without a config, or if its family is unknown, the structure comes from the tensor names. Each
// module with tensors is a layer, each member of the outermost numbered lists (layers.0, layers.1,
// …) a wrap unit, and every operation opaque. The order is the files', with numbered units
// ascending. Only weights can be counted then, and a warning says so. Files that fill less than
// half of the config's model are refused.
//
// The path may be one safetensors file. If it is the whole checkpoint of a folder with a
// config.json, the folder is read.
//
// A release of Transformers takes precedence over the config's, as in [FromConfig].
func FromCheckpoint(path string, transformers ...string) (*modelgraph.Graph, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return fromFile(path, transformers)
	}
	return fromFolder(path, transformers)
}

func fromFolder(dir string, transformers []string) (*modelgraph.Graph, error) {
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	weights := slices.ContainsFunc(names, isWeights)
	if !slices.Contains(names, ConfigName) {
		if !weights {
			return nil, noModel(dir, names)
		}
		return genericFolder(dir, "there is no "+ConfigName)
	}
	data, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	graph, f, cfg, err := fromConfig(filepath.Join(dir, ConfigName), data, transformers...)
	if err == nil {
		graph, err = cfg.checked(graph)
	}
	if cfg == nil {
		return nil, err
	}
	if weights && graph == nil {
		return unreadFolder(dir, cfg, err)
	}
	if !weights {
		if graph, err = byRelease(graph, cfg, err, folderName(dir), dir); err != nil {
			return nil, err
		}
		graph.Config = data
	}
	graph.Name, graph.Source, graph.Folder = folderName(dir), dir, dir
	if !weights {
		graph.Warnings = append(graph.Warnings, otherWeights(names)...)
		return asStored(graph, cfg)
	}
	reason := unknown(err)
	if err == nil && families[cfg.name("model_type")] != f {
		reason = unknownType(cfg.name("model_type"))
	}
	return withWeights(dir, graph, f.types[0], cfg, reason)
}

// unreadFolder reads a folder whose config no reader reads.
func unreadFolder(dir string, cfg *config, fault error) (*modelgraph.Graph, error) {
	reason, in := unknown(fault), cfg.release()
	if explains(in, cfg, fault) {
		return folderOfTable(in, cfg, dir, cmp.Or(reason, fault.Error()))
	}
	if reason == "" {
		return nil, fault
	}
	if errors.As(fault, new(*unknownFamilyError)) {
		if graph, f := asLlama(cfg); graph != nil {
			graph.Name, graph.Source, graph.Folder = folderName(dir), dir, dir
			return withWeights(dir, graph, f.types[0], cfg, reason)
		}
	}
	return listedFolder(dir, cfg, reason)
}

// fromFile reads one safetensors file, or the folder whose whole checkpoint it is.
func fromFile(path string, transformers []string) (*modelgraph.Graph, error) {
	dir, base := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	reason := "there is no " + ConfigName + " next to the file"
	if _, err := os.Stat(filepath.Join(dir, ConfigName)); err == nil {
		if ck, err := safetensors.ReadFolder(dir); err == nil && len(ck.Files) == 1 && ck.Files[0] == base {
			graph, err := fromFolder(dir, transformers)
			if err == nil {
				graph.Source = path
			}
			return graph, err
		}
		reason = "the file is not the whole checkpoint of its folder, whose " + ConfigName + " is not used"
	}
	ck, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name == "model" {
		name = folderName(dir)
	}
	return generic(name, path, ck, reason)
}

// withWeights joins the config's graph with the files. If the graph is doubtful, every tensor must
// belong to it.
func withWeights(dir string, graph *modelgraph.Graph, kind string, cfg *config, doubt string) (*modelgraph.Graph, error) {
	ck, err := named(safetensors.ReadFolder(dir))
	if err != nil {
		return nil, err
	}
	graph.Warnings = slices.DeleteFunc(graph.Warnings, func(word string) bool { return strings.Contains(word, fromConfigAlone) })
	out, assigned, err := assign(graph, cfg, ck)
	if doubt != "" && (err != nil || !assigned.exact()) {
		return listedFolder(dir, cfg, fmt.Sprintf("%s, and the files are not those of a %s with its fields", doubt, kind))
	}
	return out, err
}

// named are files whose tensors have names that a path can have.
func named(ck *safetensors.Checkpoint, err error) (*safetensors.Checkpoint, error) {
	if err == nil {
		err = paths.CheckNames(ck)
	}
	return ck, err
}

// readConfig reads the folder's config.json by the rule of [safetensors.OpenBeneath].
func readConfig(dir string) ([]byte, error) {
	file, info, err := safetensors.OpenBeneath(dir, ConfigName)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	if info.Size() > maxConfigBytes {
		return nil, &modelgraph.SyntaxError{File: filepath.Join(dir, ConfigName), Msg: fmt.Sprintf("%d bytes is more than a config has", info.Size())}
	}
	data, err := io.ReadAll(io.LimitReader(file, maxConfigBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Join(dir, ConfigName), err)
	}
	return data, nil
}

// list is the names in a folder, sorted.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing folder: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}
