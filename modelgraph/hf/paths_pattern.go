package hf

import (
	"cmp"
	"strings"
)

// patterns is a tree of names with stars, by their parts.
type patterns struct {
	root *patternNode
}

type patternNode struct {
	children map[string]*patternNode
	first    int    // position of its first name in the list
	name     string // the pattern, if a tensor ends here
	path     string // the pattern up to here
}

func newPatterns(names []string) *patterns {
	rules := &patterns{root: &patternNode{}}
	for i, name := range names {
		rules.add(name, i)
	}
	return rules
}

func (rules *patterns) add(name string, at int) {
	node := rules.root
	for component := range strings.SplitSeq(name, ".") {
		next := node.children[component]
		if next == nil {
			next = &patternNode{first: at, path: strings.TrimPrefix(node.path+"."+component, ".")}
			if node.children == nil {
				node.children = make(map[string]*patternNode)
			}
			node.children[component] = next
		}
		node = next
	}
	node.name = name
}

// walk follows a name through the patterns; a literal part precedes a star. nodes has one node for
// each matched part.
func (rules *patterns) walk(name string) (nodes []*patternNode) {
	node := rules.root
	for component := range strings.SplitSeq(name, ".") {
		next := node.children[component]
		if next == nil && decimal(component) {
			next = node.children["*"]
		}
		if next == nil {
			return nodes
		}
		nodes, node = append(nodes, next), next
	}
	return nodes
}

// match is the pattern of a tensor's name, or "".
func (rules *patterns) match(name string) string {
	nodes := rules.walk(name)
	if len(nodes) != strings.Count(name, ".")+1 {
		return ""
	}
	return nodes[len(nodes)-1].name
}

// compare puts names in module order: lists by number, else in the order of the patterns. Names
// without a pattern are last.
func (rules *patterns) compare(x, y string) int {
	nodes, b := rules.walk(x), rules.walk(y)
	xs, ys := strings.Split(x, "."), strings.Split(y, ".")
	for i := range min(len(nodes), len(b)) {
		if nodes[i] != b[i] {
			return cmp.Or(cmp.Compare(nodes[i].first, b[i].first), strings.Compare(xs[i], ys[i]))
		}
		if c := compareNumbers(xs[i], ys[i]); nodes[i].isStar() && c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(b), len(nodes)), strings.Compare(x, y))
}

func (node *patternNode) isStar() bool { return node.path == "*" || strings.HasSuffix(node.path, ".*") }

// numbers are the parts of a name that are numbers.
func numbers(name string) []string {
	var out []string
	for component := range strings.SplitSeq(name, ".") {
		if decimal(component) {
			out = append(out, component)
		}
	}
	return out
}

// starred is a name with a star for every number.
func starred(name string) string {
	parts := strings.Split(name, ".")
	for i, component := range parts {
		if decimal(component) {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// filled is a pattern with numbers in place of its stars.
func filled(pattern string, numbers []string) string {
	parts := strings.Split(pattern, ".")
	for i, component := range parts {
		if component == "*" && len(numbers) > 0 {
			parts[i], numbers = numbers[0], numbers[1:]
		}
	}
	return strings.Join(parts, ".")
}
