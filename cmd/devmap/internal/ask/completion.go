package ask

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/fixtures"
	"github.com/devmap-dev/devmap/modelgraph/load"
)

// CompleteModel completes the MODEL argument: built-in configs, and files and folders that may be a
// model. The next argument is a file (MAP).
func CompleteModel(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var found []cobra.Completion
	for _, name := range load.Names(fixtures.Models()) {
		if strings.HasPrefix(name, strings.ToLower(prefix)) {
			found = append(found, name)
		}
	}
	dir, _ := filepath.Split(prefix)
	entries, _ := os.ReadDir(filepath.Join(".", dir)) // skip folders that cannot be listed
	if filepath.IsAbs(prefix) {
		entries, _ = os.ReadDir(dir)
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	for _, entry := range entries {
		path := dir + entry.Name()
		switch info, err := os.Stat(path); {
		case err != nil || !strings.HasPrefix(path, prefix) || strings.HasPrefix(entry.Name(), "."):
		case info.IsDir():
			found, directive = append(found, path+"/"), directive|cobra.ShellCompDirectiveNoSpace
		case modelEnding(path):
			found = append(found, path)
		}
	}
	return found, directive
}

// modelEnding reports the endings of files that describe a model.
func modelEnding(path string) bool {
	switch filepath.Ext(path) {
	case ".json", ".safetensors", ".txt":
		return true
	}
	return false
}
