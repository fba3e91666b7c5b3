package paths

import (
	"cmp"
	"strings"
)

// Patterns is a tree of names with stars, by their parts.
type Patterns struct {
	Children map[string]*Patterns
	first    int    // position of its first name in the list
	name     string // the pattern, if a tensor ends here
	Path     string // the pattern up to here
}

// NewPatterns is the tree of a list of names.
func NewPatterns(names []string) *Patterns {
	rules := new(Patterns)
	for i, name := range names {
		rules.add(name, i)
	}
	return rules
}

func (rules *Patterns) add(name string, at int) {
	node := rules
	for component := range strings.SplitSeq(name, ".") {
		next := node.Children[component]
		if next == nil {
			next = &Patterns{first: at, Path: strings.TrimPrefix(node.Path+"."+component, ".")}
			if node.Children == nil {
				node.Children = make(map[string]*Patterns)
			}
			node.Children[component] = next
		}
		node = next
	}
	node.name = name
}

// Walk follows a name through the patterns; a literal part precedes a star. nodes has one node for
// each matched part.
func (rules *Patterns) Walk(name string) (nodes []*Patterns) {
	node := rules
	for component := range strings.SplitSeq(name, ".") {
		next := node.Children[component]
		if next == nil && Decimal(component) {
			next = node.Children["*"]
		}
		if next == nil {
			return nodes
		}
		nodes, node = append(nodes, next), next
	}
	return nodes
}

// Match is the pattern of a tensor's name, or "".
func (rules *Patterns) Match(name string) string {
	nodes := rules.Walk(name)
	if len(nodes) != strings.Count(name, ".")+1 {
		return ""
	}
	return nodes[len(nodes)-1].name
}

// Compare puts names in module order: lists by number, else in the order of the patterns. Names
// without a pattern are last.
func (rules *Patterns) Compare(x, y string) int {
	nodes, b := rules.Walk(x), rules.Walk(y)
	xs, ys := strings.Split(x, "."), strings.Split(y, ".")
	for i := range min(len(nodes), len(b)) {
		if nodes[i] != b[i] {
			return cmp.Or(cmp.Compare(nodes[i].first, b[i].first), strings.Compare(xs[i], ys[i]))
		}
		if c := compareNumbers(xs[i], ys[i]); nodes[i].IsStar() && c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(b), len(nodes)), strings.Compare(x, y))
}

// IsStar reports that the last part of the pattern is a star.
func (rules *Patterns) IsStar() bool { return rules.Path == "*" || strings.HasSuffix(rules.Path, ".*") }

// Numbers are the parts of a name that are numbers.
func Numbers(name string) []string {
	var out []string
	for component := range strings.SplitSeq(name, ".") {
		if Decimal(component) {
			out = append(out, component)
		}
	}
	return out
}

// Starred is a name with a star for every number.
func Starred(name string) string {
	parts := strings.Split(name, ".")
	for i, component := range parts {
		if Decimal(component) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// Filled is a pattern with numbers in place of its stars.
func Filled(pattern string, numbers []string) string {
	parts := strings.Split(pattern, ".")
	for i, component := range parts {
		if component == "*" && len(numbers) > 0 {
			parts[i], numbers = numbers[0], numbers[1:]
		}
	}
	return strings.Join(parts, ".")
}
