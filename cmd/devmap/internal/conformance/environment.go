package main

import (
	"context"
	"embed"
	"io/fs"
	"path/filepath"
)

//go:embed python/*.py python/requirements.txt
var carried embed.FS

// python returns the folder of scripts.
func python() fs.FS {
	folder, err := fs.Sub(carried, "python")
	if err != nil {
		panic(err) // the name is a constant
	}
	return folder
}

// environment makes a virtual environment with the scripts' packages.
func environment(ctx context.Context, folder string) (interpreter string, err error) {
	place := filepath.Join(folder, "environment")
	if err := shown(ctx, "python3", "-m", "venv", place); err != nil {
		return "", err
	}
	interpreter = filepath.Join(place, "bin", "python")
	return interpreter, shown(ctx, interpreter, "-m", "pip", "install", "--quiet", "-r", filepath.Join(folder, "python", "requirements.txt"))
}
