package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pythonVariable names the Python with torch; the default is python3 in PATH.
const pythonVariable = "DEVMAP_PYTHON"

// Step is a step that Python runs on tensors without data: a config's model, with a map for an
// engine.
type Step struct {
	Config string         `json:"config"`
	Class  string         `json:"class"`
	Map    map[string]any `json:"map"`
	Engine string         `json:"engine"` // accelerate, or torch, which uses Stages
	Stages any            `json:"stages,omitempty"`
}

// Ran is the result of a step. If it failed, Operation at Line in the forward of Module reads
// tensors of Devices.
type Ran struct {
	OK        bool     `json:"ok"`
	Message   string   `json:"message"`
	Module    string   `json:"module"`
	Line      string   `json:"line"`
	Operation string   `json:"operation"`
	Devices   []string `json:"devices"`
	Assumed   []string `json:"assumed"`
	Versions  string   `json:"versions"`
}

// maxAnswer is the largest answer accepted from Python.
const maxAnswer = 1 << 20

// Run runs the step in devmap's Python package (modelgraph/python/devmap/_core/checked.py).
func Run(ctx context.Context, step *Step) (*Ran, error) {
	python, err := pythonWithTorch()
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(step)
	if err != nil {
		return nil, err
	}
	child := exec.CommandContext(ctx, python, "-m", "devmap._core.checked") //nolint:gosec // the user names the Python
	child.Stdin, child.Env = bytes.NewReader(asked), stepEnvironment(os.Environ())
	var printed, said bytes.Buffer
	child.Stdout, child.Stderr = &printed, &said
	failed := child.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var answer struct {
		Ran

		Error string `json:"error"`
	}
	switch text := said.String(); {
	case strings.Contains(text, "No module named 'devmap") || strings.Contains(text, "No module named devmap"):
		return nil, fmt.Errorf("--run: %s has no package devmap: install devmap-gpu there, or set PYTHONPATH to modelgraph/python of a clone", python)
	case failed != nil:
		return nil, fmt.Errorf("--run: %s: %w: %s", python, failed, lastLine(text))
	case printed.Len() > maxAnswer:
		return nil, fmt.Errorf("--run: %s printed %d bytes, at most %d are an answer", python, printed.Len(), maxAnswer)
	}
	if err := json.Unmarshal(printed.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("--run: the answer of %s: %w", python, err)
	}
	if answer.Error != "" {
		return nil, errors.New("--run: " + answer.Error)
	}
	return &answer.Ran, nil
}

func pythonWithTorch() (string, error) {
	if named := os.Getenv(pythonVariable); named != "" {
		return named, nil
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("--run: there is no python3 on PATH: set " + pythonVariable + " to a Python that has torch and Transformers")
}

// stepEnvironment returns an environment with devmap's package on Python's path, if the program is
// in its wheel or in bin of a clone. It hides GPUs and allows no network.
func stepEnvironment(environment []string) []string {
	path := os.Getenv(pythonPath)
	if folder := packageFolder(); folder != "" {
		path = strings.TrimSuffix(folder+string(os.PathListSeparator)+path, string(os.PathListSeparator))
	}
	return append(environment, pythonPath+"="+path, "CUDA_VISIBLE_DEVICES=", "HF_HUB_OFFLINE=1", "PYTHONDONTWRITEBYTECODE=1")
}

func packageFolder() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if whole, err := filepath.EvalSymlinks(program); err == nil {
		program = whole
	}
	above := filepath.Dir(filepath.Dir(program)) // of devmap/_bin, or bin
	for _, folder := range []string{filepath.Dir(above), filepath.Join(above, "modelgraph", "python")} {
		if _, err := os.Stat(filepath.Join(folder, "devmap", "_core", "checked.py")); err == nil {
			return folder
		}
	}
	return ""
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), "it printed nothing")
}
