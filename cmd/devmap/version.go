package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/backends"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/planner/devicemap"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and its date",
		Long: `Print the version, the commit and its date, the system and the Go version.

A build with CUDA support also lists what it finds here: the driver, libraries
and GPUs.`,
		Example: `  devmap version
  devmap version --json`,
		Args: out.Exactly(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return devicemap.WriteJSON(cmd.OutOrStdout(), versionOf())
			}
			err := printVersion(cmd)
			for _, line := range backends.Found() { // in a build for GPUs: what runs programs
				err = errors.Join(err, out.Say(cmd.OutOrStdout(), "%s\n", line))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print JSON")
	return cmd
}

// versionOutput is devmap.version/v1.
type versionOutput struct {
	FormatVersion string `json:"format_version"`
	Version       string `json:"version"`
	Commit        string `json:"commit"` // empty: unknown in this build
	Date          string `json:"date"`   // of the commit, in UTC (RFC 3339)
	Modified      bool   `json:"modified"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	CUDA          struct {
		Built bool     `json:"built"`
		Found []string `json:"found"`
	} `json:"cuda"`
}

// These are set for a release: -ldflags "-X main.stamp=1.2.3 -X main.stampCommit=… -X
// main.stampDate=2026-01-02T03:04:05Z".
var stamp, stampCommit, stampDate string

// versionOf returns the release's version, or the module's from the build information.
func versionOf() *versionOutput {
	made := &versionOutput{
		FormatVersion: "devmap.version/v1", Version: stamp, Commit: stampCommit, Date: stampDate, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
	}
	made.CUDA.Built, made.CUDA.Found = backends.Built() == nil, append([]string{}, backends.Found()...)
	info, ok := debug.ReadBuildInfo()
	if !ok || stamp != "" {
		return made
	}
	made.Version = info.Main.Version
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			made.Commit = setting.Value
		case "vcs.time":
			made.Date = setting.Value
		case "vcs.modified":
			made.Modified = setting.Value == "true"
		}
	}
	return made
}

// printVersion prints the version on one line.
func printVersion(cmd *cobra.Command) error {
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "devmap %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return err
}

// version returns the version with the commit and its date: 1.2.3 (0123456789ab, 2026-01-02).
func version() string {
	made := versionOf()
	var parts []string
	if made.Commit != "" {
		commit := made.Commit[:min(len(made.Commit), 12)]
		if made.Modified {
			commit += ", modified"
		}
		parts = append(parts, commit)
	}
	if day, _, _ := strings.Cut(made.Date, "T"); day != "" {
		parts = append(parts, day)
	}
	value := made.Version
	if value == "" {
		value = "(unknown)"
	}
	if len(parts) > 0 {
		value += " (" + strings.Join(parts, ", ") + ")"
	}
	return value
}
