//go:build cuda && linux && cgo && amd64

package blas

import (
	"os"
	"path/filepath"
	"slices"
)

// candidates are the possible places of cuBLASLt, the newest first: by the loader's own rules, in
// CUDA's folders, and in Python packages.
func candidates() (all []string) {
	var folders []string
	add := func(patterns ...string) {
		for _, pattern := range patterns {
			found, _ := filepath.Glob(pattern) // the patterns are well formed but for odd settings
			slices.Sort(found)
			slices.Reverse(found)
			folders = append(folders, found...)
		}
	}
	for _, name := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := os.Getenv(name); root != "" {
			add(root+"/lib64", root+"/targets/x86_64-linux/lib")
		}
	}
	python := func(root string) {
		add(root+"/lib/python3*/site-packages/nvidia/*/lib", root+"/lib/python3*/dist-packages/nvidia/*/lib")
	}
	for _, name := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := os.Getenv(name); root != "" {
			python(root)
		}
	}
	add("/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64")
	for _, root := range []string{"/usr/local", "/usr", "/opt/*/.venv", "/opt/*"} {
		python(root)
	}
	for _, version := range []string{"13", "12", "11"} {
		name := "libcublasLt.so." + version
		all = append(all, name)
		for _, folder := range folders {
			if path := filepath.Join(folder, name); !slices.Contains(all, path) {
				if _, err := os.Stat(path); err == nil {
					all = append(all, path)
				}
			}
		}
	}
	return all
}
