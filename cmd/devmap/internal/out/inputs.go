package out

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Spare refuses an output that would overwrite an input, or a file in the model's folder that
// devmap did not write. It compares files, not names: links in a download cache give one file
// several names.
func Spare(out, model string, inputs ...string) error {
	return SpareBy("output", out, model, inputs...)
}

// SpareBy is [Spare] for a file that another flag names.
func SpareBy(flag, out, model string, inputs ...string) error {
	target, err := os.Stat(out)
	if out == "" || err != nil || !target.Mode().IsRegular() {
		return nil //nolint:nilerr // nothing is there to overwrite, or writing tells
	}
	same := func(path string) bool {
		info, err := os.Stat(path)
		return path != "" && err == nil && os.SameFile(info, target)
	}
	for _, in := range inputs {
		if same(in) {
			return Usagef("--%s %q is %q, which is read: name another file", flag, out, in)
		}
	}
	for _, file := range modelFiles(model) {
		if same(file) && !written(file) {
			return Usagef("--%s %q is %q, a file of the model: name another file", flag, out, file)
		}
	}
	return nil
}

// modelFiles lists the files of a MODEL argument: one, or all in its folder.
func modelFiles(arg string) []string {
	if arg == "" {
		return nil
	}
	place, builtIn := load.Place(arg, load.Options{BuiltIn: fixtures.Models(), Env: os.Getenv})
	info, err := os.Stat(place)
	if err != nil || builtIn != nil { // built in, or missing
		return nil
	}
	dir := place
	if !info.IsDir() {
		dir = filepath.Dir(place)
		name := filepath.Base(place)
		if name != "config.json" && filepath.Ext(name) != ".safetensors" && !strings.Contains(name, ".index.") {
			return []string{place}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return []string{place}
	}
	files := []string{place}
	for _, entry := range entries {
		files = append(files, filepath.Join(dir, entry.Name()))
	}
	return files
}

// written reports a plan or a device map that devmap wrote, which it may overwrite. A vocabulary is
// also an object of numbers, but with more numbers than there can be devices.
func written(path string) bool {
	if filepath.Ext(path) != ".json" {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // opened for reading
	head := make([]byte, 256)
	count, _ := file.Read(head)
	for _, kind := range []string{"plan", "front", "estimate"} {
		if strings.Contains(string(head[:count]), `"format_version": "devmap.`+kind+`/`) {
			return true
		}
	}
	flat, plan, faults, err := devicemap.ReadMap(path)
	return err == nil && plan == nil && len(faults) == 0 && len(flat) > 0 &&
		!beyond(flat)
}

// beyond reports a map with devices that no plan has.
func beyond(flat devicemap.Flat) bool {
	for _, entry := range flat {
		if int(entry.Device) >= costmodel.MaxDevices {
			return true
		}
	}
	return false
}
