package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  out.Exactly(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := printVersion(cmd)
			for _, line := range backends.Found() { // in a build for GPUs: what they are run with
				err = errors.Join(err, out.Say(cmd.OutOrStdout(), "%s\n", line))
			}
			return err
		},
	}
}

func printVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "devmap %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

// stamp is the version of a release: -ldflags "-X main.stamp=1.2.3".
var stamp string

// version is that of the release, else the module's, as the build recorded it, with
// the commit.
func version() string {
	if stamp != "" {
		return stamp
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	value := info.Main.Version
	for _, buildSetting := range info.Settings {
		if buildSetting.Key == "vcs.revision" && len(buildSetting.Value) >= 12 && value == "(devel)" {
			value += " " + buildSetting.Value[:12]
		}
	}
	return value
}
