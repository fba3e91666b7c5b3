package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// hint is a printed change.
type hint struct {
	flags  string // with words in parentheses
	figure string // "12.00 GiB of 23.58 GiB"; "" if there is none
	fits   bool
}

var (
	remedyLine = regexp.MustCompile(`(?m)^ {2}(\S.*): fullest GPU (.*), fits$`)
	changeLine = regexp.MustCompile(`(?m)^change: (.*?): (?:nothing leaves the GPUs, )?(?:largest share|step) .*, fullest GPU (.*), (fits|does not fit yet)$`)
	wouldLower = regexp.MustCompile(`; what would lower it: (.*)$`)
	lowers     = regexp.MustCompile(`^(.*): fullest GPU (.*), (fits|does not fit yet)$`)
	wouldDo    = regexp.MustCompile(`; (--\S.*?) would do as well`)
	inBrackets = regexp.MustCompile(`\(([^()]*)\)`)
)

// remedies returns the hints of an answer that does not fit.
func remedies(stderr string) []hint {
	var out []hint
	for _, m := range remedyLine.FindAllStringSubmatch(stderr, -1) {
		out = append(out, hint{m[1], m[2], true})
	}
	return out
}

// advised returns the hints of a plan, from --explain and from its warnings.
func advised(stderr string, warnings []string) []hint {
	var out []hint
	for _, m := range changeLine.FindAllStringSubmatch(stderr, -1) {
		out = append(out, hint{m[1], m[2], m[3] == "fits"})
	}
	for _, w := range warnings {
		if m := wouldDo.FindStringSubmatch(w); m != nil {
			out = append(out, hint{m[1], "", true})
		}
		if m := wouldLower.FindStringSubmatch(w); m != nil {
			for part := range strings.SplitSeq(m[1], "; ") {
				if l := lowers.FindStringSubmatch(part); l != nil {
					out = append(out, hint{l[1], l[2], l[3] == "fits"})
				}
			}
		}
	}
	return out
}

// follow returns the user's command with a hint's flags in place of its own, and without the flags
// that the hint removes.
func follow(flags []setting, h hint) ([]string, error) {
	drop := map[string]bool{}
	text := inBrackets.ReplaceAllStringFunc(h.flags, func(m string) string {
		if names, ok := strings.CutPrefix(strings.Trim(m, "()"), "without "); ok {
			for name := range strings.FieldsSeq(names) {
				drop[strings.TrimPrefix(name, "--")] = true
			}
		}
		return ""
	})
	set := strings.Fields(strings.ReplaceAll(text, "'", ""))
	for i, w := range set {
		name, isFlag := strings.CutPrefix(w, "--")
		if isFlag {
			name, _, _ = strings.Cut(name, "=")
			drop[name] = true
		} else if i == 0 || !strings.HasPrefix(set[i-1], "--") {
			return nil, fmt.Errorf("%q is no flag with a value", h.flags)
		}
	}
	left := slices.DeleteFunc(slices.Clone(flags), func(f setting) bool { return drop[f.name] })
	return slices.Concat(words(left), set), nil
}
