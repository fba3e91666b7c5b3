package hf

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// isWeights reports whether a file makes a folder a safetensors checkpoint.
func isWeights(name string) bool {
	return strings.HasSuffix(name, ".safetensors") ||
		strings.HasSuffix(name, ".json") && strings.Contains(name, ".safetensors.index.")
}

// isOther reports whether a file has weights in an unsupported format.
func isOther(name string) bool {
	return slices.Contains([]string{".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".npz", ".gguf", ".onnx"}, filepath.Ext(name)) &&
		name != "training_args.bin" && name != "optimizer.pt" && name != "scheduler.pt"
}

// otherWeights warns of weights that are there and are not read.
func otherWeights(names []string) []string {
	for _, name := range names {
		if isOther(name) {
			return []string{fmt.Sprintf("%q holds weights in a form that is not read: sizes are the config's; convert it to safetensors to have the stored ones", clipName(name))}
		}
	}
	return nil
}

// noModel is the error for a folder without config.json and safetensors files.
func noModel(dir string, names []string) error {
	text, hint := fmt.Sprintf("%s: no %s and no .safetensors file in the folder: ", dir, ConfigName), "it holds no model"
	for _, name := range names {
		switch {
		case name == "model_index.json":
			return errors.New(text + "it is a diffusers pipeline; give one of its components, such as " + filepath.Join(dir, "transformer"))
		case isOther(name):
			hint = fmt.Sprintf("%q is not read on its own; put the model's %s in its folder", clipName(name), ConfigName)
		}
	}
	return errors.New(text + hint)
}

// folderName names the model in a folder: NAME in a Hugging Face cache
// (models--ORG--NAME/snapshots/REV), else the folder's name. Names in a ModelScope cache get their
// dots back (Qwen2___5).
func folderName(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = filepath.Clean(dir)
	}
	name := filepath.Base(abs)
	if up := filepath.Dir(abs); filepath.Base(up) == "snapshots" {
		if repo, ok := strings.CutPrefix(filepath.Base(filepath.Dir(up)), "models--"); ok {
			_, name = cutRepo(repo)
		}
	}
	name = strings.ReplaceAll(name, "___", ".")
	if name == "" || name == string(filepath.Separator) || name == "." {
		return "model"
	}
	return name
}

// cutRepo splits ORG--NAME; a repository may have no ORG.
func cutRepo(repo string) (org, name string) {
	if i := strings.LastIndex(repo, "--"); i >= 0 {
		return repo[:i], repo[i+2:]
	}
	return "", repo
}
