package emit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/planner/internal/quote"
)

// path is a file of the plan from the folder of the written file: an absolute name stays, another
// one is relative to that folder.
func (input *Input) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	folder := filepath.Dir(input.Output)
	if info, err := os.Stat(input.Output); err == nil && !info.Mode().IsRegular() { // a pipe
		folder = "."
	}
	physical := func(folder string) string {
		whole, err := filepath.Abs(folder)
		if found, fault := filepath.EvalSymlinks(whole); err == nil && fault == nil {
			return found
		}
		return whole
	}
	relative, err := filepath.Rel(physical(folder), filepath.Join(physical(filepath.Dir(name)), filepath.Base(name)))
	if err != nil {
		return name
	}
	return relative
}

// A script sets HERE to its own folder, so that it starts from any.
const (
	scriptFolder    = `"$HERE/"`
	setScriptFolder = "case $0 in */*) HERE=${0%/*};; *) HERE=.;; esac\n"
)

// fromHere is a file of the plan as a word of a script that sets HERE.
func (input *Input) fromHere(name string) string {
	if path := input.path(name); !filepath.IsAbs(path) {
		return scriptFolder + quote.Shell(path)
	}
	return quote.Path(name)
}

// llama-swap starts the servers of several models. It splits cmd as a shell does, and reads ${…} as
// its own (llama-swap's docs/configuration.md).
var _ = register(&Target{
	Name: "llama-swap", Aliases: []string{"llamaswap", "llama_swap"}, File: "llama-swap.yaml", Run: "llama-swap --config llama-swap.yaml",
	Example: "tiny.gguf --gpus 2", Golden: []string{"llama.cpp", "llama.cpp-draft"},
	needs: []need{servedBy(costmodel.LlamaCPP)},
	Write: func(to io.Writer, input *Input) error {
		flags, err := llamaFlags(input.Plan)
		if err != nil {
			return err
		}
		words := []string{"llama-server", "--port", "${PORT}"}
		for _, flag := range flags {
			text := flag.text
			if flag.file {
				text = inFolder(input.path(text))
			}
			if strings.Contains(text, "${") || unwritable(text) {
				return refused("the plan for %q has a file %s: llama-swap has no form for ${ and for control characters", input.Plan.Model.Name, quote.Comment(text))
			}
			words = append(words, quote.Shell(text))
		}
		models := mapping{{input.Plan.Model.Name, mapping{{"cmd", strings.Join(words, " ")}}}}
		config := mapping{{"models", models}}
		return config.print(to, "llama.cpp for the plan of "+quote.Comment(input.Plan.Model.Name))
	},
	Usage: func(input *Input, file string) (usage, note string) {
		if slices.ContainsFunc([]string{input.Plan.Model.Source, input.Plan.Workload.MMProj, input.Plan.Workload.Draft}, func(name string) bool { return name != "" && !filepath.IsAbs(name) }) {
			note = "names of files are relative to the folder of the file: start llama-swap there"
		}
		return "llama-swap --config " + quote.Path(file), note
	},
})

// unwritable reports a name that a line of text cannot have.
func unwritable(name string) bool {
	return !utf8.ValidString(name) || strings.ContainsFunc(name, quote.Steers)
}

// inFolder is a relative name that is not taken for a flag or a volume.
func inFolder(name string) string {
	if filepath.IsAbs(name) || name == "." || name == ".." || strings.HasPrefix(name, "../") {
		return name
	}
	return "./" + name
}

// Docker Compose starts llama.cpp's image. Names of files are relative to the compose file.
var _ = register(&Target{
	Name: "docker-compose", Aliases: []string{"compose", "docker"}, File: "compose.yaml", Run: "docker compose -f compose.yaml up",
	Example: "tiny.gguf --gpus 2", Golden: []string{"llama.cpp", "llama.cpp-draft"},
	needs: []need{servedBy(costmodel.LlamaCPP)},
	Write: writeCompose,
	Usage: func(_ *Input, file string) (usage, note string) {
		return "docker compose -f " + quote.Path(file) + " up", "the image is the newest one, and the plan has the rules of llama.cpp 0.5.0: name a tag of it to keep both the same"
	},
})

func writeCompose(to io.Writer, input *Input) error {
	flags, err := llamaFlags(input.Plan)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(flags, func(flag word) bool { return unwritable(flag.text) }) {
		return refused("the plan for %q has a file whose name has control characters: a container has no form for it", input.Plan.Model.Name)
	}
	literal := func(text string) string { return strings.ReplaceAll(text, "$", "$$") } // Compose reads $ as a variable
	var folders []string
	words := []string{"--host", "0.0.0.0", "--port", "8080"}
	for _, flag := range flags {
		text := flag.text
		if flag.file {
			folder := inFolder(filepath.Dir(input.path(text)))
			place := slices.Index(folders, folder)
			if place < 0 {
				place = len(folders)
				folders = append(folders, folder)
			}
			text = fmt.Sprintf("/models/%d/%s", place, filepath.Base(text))
		}
		words = append(words, literal(text))
	}
	var volumes []mapping
	for place, folder := range folders {
		volumes = append(volumes, mapping{{"type", "bind"}, {"source", literal(folder)}, {"target", fmt.Sprintf("/models/%d", place)}, {"read_only", true}})
	}
	var gpus []string
	for i := range input.Plan.Topology.Devices {
		gpus = append(gpus, fmt.Sprint(i))
	}
	device := mapping{{"driver", "nvidia"}, {"device_ids", gpus}, {"capabilities", []string{"gpu"}}}
	service := mapping{
		{"image", "ghcr.io/ggml-org/llama.cpp:server-cuda"},
		{"command", words},
		{"volumes", volumes},
		{"ports", []string{"8080:8080"}},
		{"deploy", mapping{{"resources", mapping{{"reservations", mapping{{"devices", []mapping{device}}}}}}}},
	}
	config := mapping{{"services", mapping{{"llama-server", service}}}}
	return config.print(to, "llama.cpp for the plan of "+quote.Comment(input.Plan.Model.Name))
}

// ollama reads a Modelfile. It has no parameters for a split, for experts on the host, and for other
// models (docs/modelfile.mdx; api/types.go, Runner).
var _ = register(&Target{
	Name: "ollama", Aliases: []string{"modelfile"}, File: "Modelfile", Run: "ollama create NAME -f Modelfile",
	Example: "tiny.gguf --gpus 1", Golden: []string{"llama.cpp"},
	needs: []need{servedBy(costmodel.LlamaCPP)},
	Write: func(to io.Writer, input *Input) error {
		plan := input.Plan
		workload := &plan.Workload
		_, offloaded, err := unitsOf(plan)
		switch {
		case err != nil:
			return err
		case workload.HostExperts > 0:
			return refused("the plan for %q keeps experts on the host, which no parameter of ollama does: emit --for llama.cpp", plan.Model.Name)
		case workload.Draft != "" || workload.MMProj != "":
			return refused("the plan for %q has a draft or an encoder of images, which ollama takes from its own library: emit --for llama.cpp", plan.Model.Name)
		case !slices.Contains([]string{"f16", "q8_0", "q4_0"}, workload.KVType):
			return refused("the plan for %q has a cache of type %s: ollama has f16, q8_0 and q4_0", plan.Model.Name, quote.Comment(workload.KVType))
		}
		name := inFolder(input.path(plan.Model.Source))
		if strings.Contains(name, `"`) || unwritable(name) {
			return refused("the plan for %q has a file %s: a Modelfile has no form for quotes and control characters", plan.Model.Name, quote.Comment(name))
		}
		_, err = fmt.Fprintf(to, "# llama.cpp for the plan of %s\nFROM %s\nPARAMETER num_ctx %d\nPARAMETER num_batch %d\nPARAMETER num_gpu %d\n", quote.Comment(plan.Model.Name), name, workload.Context, workload.UBatch, offloaded)
		return err
	},
	Usage: func(input *Input, file string) (usage, note string) {
		workload := &input.Plan.Workload
		note = fmt.Sprintf("start ollama serve with OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=%s OLLAMA_NUM_PARALLEL=%d, which no Modelfile has", workload.KVType, workload.Sequences)
		if len(input.Plan.Topology.Devices) > 1 {
			note += "; ollama splits a model over GPUs itself, so that the plan's peaks of each GPU need not hold"
		}
		return "ollama create NAME -f " + quote.Path(file), note
	},
})
