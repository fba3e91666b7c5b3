package ask

import (
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/modelgraph"
)

// maxPresetBytes bounds a training program's configuration file.
const maxPresetBytes = 1 << 20

// preset lays the defaults of --preset, or what its file says, under the flags.
func (request *Request) preset(workload *costmodel.Workload) error {
	if !request.Given("preset") {
		return nil
	}
	if !request.Given("strategy") && request.dsConfig == "" {
		switch request.cmd.Name() {
		case "plan":
			if strategy := workload.DefaultStrategy(); strategy != "" {
				workload.Strategy = strategy
			}
		case "estimate":
			workload.Strategy = costmodel.Auto
		}
	}
	ofFile := []string{"batch", "micro_batches", "optimizer", "precision"} // the DeepSpeed configuration says them
	var said []string
	known := func(field string) bool {
		return request.Given(strings.ReplaceAll(field, "_", "-")) || slices.Contains(said, field) || request.dsConfig != "" && slices.Contains(ofFile, field)
	}
	var made []costmodel.Setting
	if isFile(workload.Preset) {
		file := workload.Preset
		text, err := modelgraph.ReadSmall(file, "a trainer's configuration", maxPresetBytes)
		if err != nil {
			return err
		}
		settings, unknown, err := workload.ReadPreset(file, text, known)
		if err != nil {
			return err
		}
		for _, setting := range settings {
			said = append(said, setting.Field)
		}
		made = settings
		if len(unknown) > 0 {
			request.presetNotes = append(request.presetNotes, file+": devmap does not read these keys: "+strings.Join(unknown, ", "))
		}
	}
	defaults, err := workload.ApplyPreset(known)
	if err != nil {
		return err
	}
	program, notes := workload.PresetNotes()
	request.presetNotes = slices.Concat([]string{"preset " + workload.Preset + " (" + program + "): " + words(slices.Concat(made, defaults))}, notes, request.presetNotes)
	return nil
}

// words are settings as flags.
func words(settings []costmodel.Setting) string {
	if len(settings) == 0 {
		return "all values are yours"
	}
	var out []string
	for _, setting := range settings {
		name, value := "--"+strings.ReplaceAll(setting.Field, "_", "-"), " "+setting.Value
		if setting.Value == "true" {
			value = ""
		}
		out = append(out, name+value)
	}
	return strings.Join(out, " ")
}

// isFile reports a value of --preset that names a file, not a preset.
func isFile(value string) bool {
	return strings.ContainsAny(value, `/\`) || strings.HasSuffix(value, ".yaml") || strings.HasSuffix(value, ".yml") || strings.HasSuffix(value, ".json")
}
