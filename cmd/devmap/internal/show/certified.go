package show

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/cmd/devmap/internal/certify"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/out"
	"github.com/devmap-dev/devmap/cmd/devmap/internal/texttab"
	"github.com/devmap-dev/devmap/executor/report"
)

// Certified prints the checks of a certificate, and its verdict in a line.
func Certified(to io.Writer, document *certify.Document) {
	table := texttab.New("check", "verdict", "")
	for _, check := range document.Checks {
		table.Row(strings.ReplaceAll(check.Name, "_", " "), string(check.Verdict), out.Cell(check.Detail))
	}
	out.Say(to, "%s\ncertificate: %s: %s\n", out.Block(table.String()), string(document.Verdict), out.OneLine(why(document))) //nolint:errcheck // nothing to do about a closed stderr
}

// why returns the verdict's reason in a line, without repeating the table's details.
func why(document *certify.Document) string {
	var all []string
	for _, verdict := range []report.Verdict{report.Fail, report.Inconclusive} {
		var named []string
		for _, check := range document.Checks {
			if check.Verdict == verdict {
				named = append(named, strings.ReplaceAll(check.Name, "_", " "))
			}
		}
		switch {
		case len(named) == 0:
		case verdict == document.Verdict:
			all = append(all, strings.Join(named, ", "))
		default:
			all = append(all, fmt.Sprintf("%s: %s", string(verdict), strings.Join(named, ", ")))
		}
	}
	for _, reason := range document.Reasons {
		named := slices.ContainsFunc(document.Checks, func(check certify.Check) bool { return strings.HasPrefix(reason, check.Name+": ") })
		if !named {
			all = append(all, reason)
		}
	}
	return strings.Join(all, "; ")
}
