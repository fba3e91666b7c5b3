package out

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Written is a file that a flag names. Kinds are those of the JSON document that will be
// written, as in devmap.KIND/v1; none: writing tells what may be replaced.
type Written struct {
	Flag, Path string
	Kinds      []string
}

// Spare refuses an output that would overwrite a file that an argument, a flag or inputs name to
// be read. It also refuses a file of the model's folder that devmap did not write, and a file of
// another kind. It compares files, not names: links of a download cache give one file several.
func Spare(cmd *cobra.Command, to Written, model string, inputs ...string) error {
	flag, out := to.Flag, to.Path
	target, err := os.Stat(out)
	if out == "" || err != nil || !target.Mode().IsRegular() {
		return nil //nolint:nilerr // nothing is there to overwrite, or writing tells
	}
	same := func(path string) bool {
		info, err := os.Stat(path)
		return path != "" && err == nil && os.SameFile(info, target)
	}
	for _, in := range append(inputs, named(cmd)...) {
		if same(in) {
			return Usagef("--%s %q is %q, which is read: name another file", flag, out, in)
		}
	}
	for _, file := range modelFiles(model) {
		if same(file) && !written(file) {
			return Usagef("--%s %q is %q, a file of the model: name another file", flag, out, file)
		}
	}
	if len(to.Kinds) > 0 && target.Size() > 0 && !forced(cmd) && !slices.Contains(to.Kinds, kindOf(out)) {
		return exists(out)
	}
	return nil
}

// named lists what may name a file that the command reads: its arguments, and the values of all
// flags but those that name outputs.
func named(cmd *cobra.Command) []string {
	names := slices.Clone(cmd.Flags().Args())
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		names = names[:dash]
	}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"output", "report", "trace", "snapshot"}, flag.Name) {
			names = append(names, flag.Value.String())
		}
	})
	return names
}

// forced reports --force.
func forced(cmd *cobra.Command) bool {
	force, err := cmd.Flags().GetBool("force")
	return err == nil && force
}

// exists refuses to replace a file.
func exists(path string) error {
	return fmt.Errorf("%q exists with other content: --force replaces it, or name another file", path)
}

// protected reports a file that is not replaced by another without --force: it has other bytes,
// and is no result of the same kind.
func protected(path, by string) bool {
	if info, err := os.Stat(path); err != nil || info.Size() == 0 || kindOf(path) != "" && kindOf(path) == kindOf(by) {
		return false
	}
	one, err := os.ReadFile(path)
	other, fault := os.ReadFile(by)
	return err != nil || fault != nil || !bytes.Equal(one, other)
}

// kindOf is the kind of a JSON document that devmap alone writes, such as "plan"; "" of
// all other files, and of documents that people write, too.
func kindOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // opened for reading
	head := make([]byte, 256)
	count, _ := io.ReadFull(file, head)
	if ours.Match(head[:count]) {
		return "page"
	}
	found := document.FindSubmatch(head[:count])
	if len(found) < 2 || slices.Contains([]string{"topology", "model"}, string(found[1])) {
		return ""
	}
	return string(found[1])
}

// ours is the beginning of a page of devmap report.
var ours = regexp.MustCompile(`^<!DOCTYPE html>\s*<html lang="en">\s*<head>\s*<meta charset="utf-8">\s*<meta name="generator" content="devmap">`)

var document = regexp.MustCompile(`^\s*\{\s*"format_version": "devmap\.([a-z]+)/`)

// modelFiles are the files that a MODEL argument stands for: one, or all of
// the folder that holds them.
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

// written reports a page, a plan or a device map that devmap wrote, which it may overwrite. A vocabulary is
// also an object of numbers, but with more numbers than there can be devices.
func written(path string) bool {
	switch kind := kindOf(path); {
	case kind == "page":
		return true
	case filepath.Ext(path) != ".json":
		return false
	case kind != "":
		return true
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
