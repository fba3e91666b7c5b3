package safetensors

import (
	"fmt"
	"slices"
	"strings"
)

// preferred are the files that transformers and diffusers write. A single file comes before an
// index, as in transformers (modeling_utils.py: _get_resolved_checkpoint_files).
var preferred = []string{
	"model.safetensors",
	"model.safetensors.index.json",
	"diffusion_pytorch_model.safetensors",
	"diffusion_pytorch_model.safetensors.index.json",
}

// choose picks the first file of a folder's checkpoint: an index, or the only file.
func choose(dir string, names []string) (string, error) {
	for _, path := range preferred {
		if slices.Contains(names, path) {
			return path, nil
		}
	}
	for _, kind := range []struct {
		is   func(string) bool
		name string
		hint string
	}{
		{isIndex, "*.safetensors.index.json", "move all but one away"},
		{isShard, "*.safetensors", "keep one, or add the model.safetensors.index.json that says which tensor is where"},
	} {
		found := filter(names, kind.is)
		if own := filter(found, notConsolidated); len(own) > 0 {
			found = own
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return "", &refusedError{dir, fmt.Sprintf("%d %s files and nothing that says which to read (%s): %s", len(found), kind.name, quoteSome(found), kind.hint)}
		}
	}
	return "", &refusedError{dir, "no .safetensors file in the folder; other formats must be converted first"}
}

func isShard(name string) bool { return strings.HasSuffix(name, ".safetensors") }

// isIndex also accepts diffusers' variants: x.safetensors.index.fp16.json.
func isIndex(name string) bool {
	return strings.HasSuffix(name, ".json") && strings.Contains(name, ".safetensors.index.")
}

// notConsolidated excludes Mistral's second copy of the weights, consolidated.safetensors or its
// shards, which transformers does not read.
func notConsolidated(name string) bool { return !strings.HasPrefix(name, "consolidated") }

func filter(names []string, keep func(string) bool) []string {
	var remaining []string
	for _, name := range names {
		if keep(name) {
			remaining = append(remaining, name)
		}
	}
	return remaining
}
