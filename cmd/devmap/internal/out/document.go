package out

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/devmap-dev/devmap/planner/devicemap"
)

// Remedy is a change of the command with which the model fits, or nearly fits: flags to set, and
// flags to leave out.
type Remedy struct {
	Flags   []string `json:"flags"`
	Without []string `json:"without"`
	Notes   []string `json:"notes"`
	Fits    bool     `json:"fits"`
	Text    string   `json:"text"`
}

// errorDocument is devmap.error/v1, which --json prints instead of a result.
type errorDocument struct {
	FormatVersion string   `json:"format_version"`
	Error         string   `json:"error"`
	Status        int      `json:"status"`
	Remedies      []Remedy `json:"remedies"`
}

// WriteError writes an error as JSON; words formats errors. A failed check has its own document
// with its faults, and reported errors need none.
func WriteError(to io.Writer, err error, status int, words func(error) string) error {
	document := errorDocument{FormatVersion: "devmap.error/v1", Status: status, Remedies: []Remedy{}}
	if reported := (*ReportedError)(nil); errors.As(err, &reported) {
		if err = reported.Err; err == nil {
			return nil
		}
	}
	if err == nil || errors.Is(err, ErrCheck) {
		return nil
	}
	document.Error = errorText(err, words)
	if none := (*Infeasible)(nil); errors.As(err, &none) && none.Remedies != nil {
		document.Remedies = none.Remedies
	}
	return devicemap.WriteJSON(to, document)
}

// Text returns an error as it is printed.
func Text(err error, words func(error) string) string { return errorText(err, words) }

// Document writes the JSON of a command that also prints a table. On a terminal it writes nothing
// without --json or a file.
func Document(cmd *cobra.Command, path string, asked bool, write func(io.Writer) error) error {
	if TableOnly(cmd, path, asked) {
		begin()
		return nil
	}
	return Write(cmd, path, write)
}

// TableOnly reports that a command prints its table and not its JSON.
func TableOnly(cmd *cobra.Command, path string, asked bool) bool {
	return path == "" && !asked && Terminal(cmd.OutOrStdout()) && Asides(cmd.ErrOrStderr()) != io.Discard
}

// Note prints a line for people to stderr, unless --quiet is given.
func Note(cmd *cobra.Command, format string, args ...any) error {
	return Say(Asides(cmd.ErrOrStderr()), format, args...)
}
