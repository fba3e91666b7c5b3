package load

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/modelgraph/hf"
	"github.com/devmap-dev/devmap/modelgraph/safetensors"
)

// cache looks for a model in a place of a download tool. It returns the model's folder, or
// "".
type cache func() string

// caches lists the possible places of a model with that name, first choice first.
func caches(name string, env func(string) string) []cache {
	var cs []cache
	if hub := hubCache(env); hub != "" {
		repo := filepath.Join(hub, "models--"+strings.ReplaceAll(name, "/", "--"))
		cs = append(cs, func() string { return snapshot(repo) })
	}
	for _, dir := range scopeFolders(name, env) {
		cs = append(cs, func() string {
			if containsModel(dir) {
				return dir
			}
			return ""
		})
	}
	return cs
}

// hubCache returns the folder of the Hugging Face cache (huggingface_hub/constants.py).
func hubCache(env func(string) string) string {
	for _, value := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if dir := env(value); dir != "" {
			return expand(dir, env)
		}
	}
	if dir := env("HF_HOME"); dir != "" {
		return filepath.Join(expand(dir, env), "hub")
	}
	if dir := env("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(expand(dir, env), "huggingface", "hub")
	}
	return home(env, ".cache", "huggingface", "hub")
}

// snapshot returns the folder of the revision that refs/main names, else the newest one, or "".
func snapshot(repo string) string {
	if f, _, err := safetensors.OpenBeneath(repo, "refs/main"); err == nil {
		defer f.Close() //nolint:errcheck // opened for reading
		rev, _ := io.ReadAll(io.LimitReader(f, 256))
		name := strings.TrimSpace(string(rev))
		dir := filepath.Join(repo, "snapshots", name)
		if name != "" && !strings.ContainsAny(name, `/\`) && filepath.IsLocal(name) && containsModel(dir) {
			return dir
		}
	}
	entries, err := os.ReadDir(filepath.Join(repo, "snapshots"))
	if err != nil {
		return ""
	}
	best, newest := "", int64(0)
	for _, entry := range entries {
		dir := filepath.Join(repo, "snapshots", entry.Name())
		info, err := entry.Info()
		if err != nil || !containsModel(dir) {
			continue
		}
		if at := info.ModTime().UnixNano(); best == "" || at > newest {
			best, newest = dir, at
		}
	}
	return best
}

// scopeFolders returns the possible places in ModelScope's cache, which writes the dots of a name
// as "___" and has had two layouts.
func scopeFolders(name string, env func(string) string) []string {
	var roots []string
	if dir := env("MODELSCOPE_CACHE"); dir != "" {
		dir = expand(dir, env)
		roots = []string{filepath.Join(dir, "models"), dir, filepath.Join(dir, "hub", "models"), filepath.Join(dir, "hub")}
	} else if dir := home(env, ".cache", "modelscope", "hub"); dir != "" {
		roots = []string{filepath.Join(dir, "models"), dir}
	}
	org, model, ok := strings.Cut(name, "/")
	if !ok {
		return nil // every model has an owner there
	}
	var dirs []string
	for _, root := range roots {
		dirs = append(dirs, filepath.Join(root, org, strings.ReplaceAll(model, ".", "___")))
		if strings.Contains(model, ".") {
			dirs = append(dirs, filepath.Join(root, org, model))
		}
	}
	return dirs
}

// containsModel reports whether a folder has a config, a pipeline or weights. A download that was
// cut off early has none.
func containsModel(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		return entry.Name() == hf.ConfigName || entry.Name() == pipelineFile || strings.HasSuffix(entry.Name(), ".safetensors")
	})
}
