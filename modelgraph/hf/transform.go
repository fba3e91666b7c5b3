package hf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// nameRule is one rule of conversion_mapping.py (core_model_loading.py: WeightTransform), its
// expressions spelled for Go.
type nameRule struct {
	// From has a group g0, g1, … for each source, and n0, n1, … for the number of a list's member
	// in it. Unless: no name that this matches.
	From   string `json:"from"`
	Unless string `json:"unless"`
	// To are the targets; a source becomes the first.
	To []string `json:"to"`
	// Ops make the targets of the sources; none: the name alone changes.
	Ops [][]any `json:"ops"`
	// Unread: Go's expressions, or the operations here, cannot express it.
	Unread bool `json:"unread"`
}

// transform is a rule that is ready to use.
type transform struct {
	converts bool
	from     *regexp.Regexp
	unless   *regexp.Regexp
	hints    []string // every name that from matches has one; none: any may match
	to       []string
	ops      [][]any
	below    *scope
}

// scope is the path of a model in the tree. Rules apply to the rest of a name, with or without the
// base model's prefix (_scoped_match).
type scope struct{ outer, inner string }

func newScope(prefix, path string) *scope {
	if path != "" {
		path += "."
	}
	if prefix != "" {
		prefix += "."
	}
	return &scope{prefix + path, path}
}

func newTransform(rule *nameRule, below *scope) *transform {
	made := &transform{converts: len(rule.Ops) > 0, from: regexp.MustCompile(rule.From), hints: hintsOf(rule.From), to: rule.To, ops: rule.Ops, below: below}
	if rule.Unless != "" {
		made.unless = regexp.MustCompile(rule.Unless)
	}
	return made
}

// match is the effect of a rule on a name.
type match struct {
	name   string // with the first target in place of the source
	source int    // which of the sources matched
	member string // the number of the list's member, unparsed
}

// match applies the rule (WeightTransform.rename_source_key). It replaces the first occurrence of
// the matched text, even if another one matched.
func (rule *transform) match(name string) (match, bool) {
	head, rest := "", name
	if rule.below != nil {
		head = rule.below.outer
		if !strings.HasPrefix(name, head) {
			head = rule.below.inner
		}
		var ok bool
		if rest, ok = strings.CutPrefix(name, head); !ok {
			return match{}, false
		}
	}
	if len(rule.hints) > 0 && !slices.ContainsFunc(rule.hints, func(hint string) bool { return strings.Contains(rest, hint) }) {
		return match{}, false
	}
	found := rule.from.FindStringSubmatchIndex(rest)
	if found == nil || rule.unless != nil && rule.unless.MatchString(rest) {
		return match{}, false
	}
	out, to := match{}, rule.to[0]
	group := func(at int) (string, bool) {
		if at < 0 || 2*at+1 >= len(found) || found[2*at] < 0 {
			return "", false
		}
		return rest[found[2*at]:found[2*at+1]], true
	}
	for at := rule.from.SubexpIndex("g0"); ; at = rule.from.SubexpIndex(fmt.Sprintf("g%d", out.source)) {
		if _, ok := group(at); ok {
			out.member, _ = group(rule.from.SubexpIndex(fmt.Sprintf("n%d", out.source)))
			if text, ok := group(at + 1); ok {
				to = strings.ReplaceAll(to, `\1`, text)
			}
			break
		}
		out.source++
	}
	out.name = head + strings.Replace(rest, rest[found[0]:found[1]], to, 1)
	return out, true
}

func (rule *transform) rename(name string) string {
	if found, ok := rule.match(name); ok {
		return found.name
	}
	return name
}
