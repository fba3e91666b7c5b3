package hf

import (
	"regexp/syntax"
	"slices"
)

// hintsOf are texts: every name that an expression matches contains one; nil if unsure. 100,000
// names pass through the rules, and most contain none. A text search is thirty times as fast as the
// expression.
func hintsOf(expr string) []string {
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	return hintsIn(tree)
}

func hintsIn(tree *syntax.Regexp) []string {
	switch tree.Op { //nolint:exhaustive // the others have no text for sure
	case syntax.OpLiteral:
		if tree.Flags&syntax.FoldCase == 0 {
			return []string{string(tree.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return hintsIn(tree.Sub[0])
	case syntax.OpConcat:
		var best []string
		for _, sub := range tree.Sub {
			if hints := hintsIn(sub); shortest(hints) >= shortest(best) {
				best = hints
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range tree.Sub {
			hints := hintsIn(sub)
			if hints == nil {
				return nil
			}
			all = append(all, hints...)
		}
		return all
	}
	return nil
}

// shortest is the length of the shortest hint: the longer, the fewer names have it by chance.
func shortest(hints []string) int {
	if len(hints) == 0 {
		return 0
	}
	return len(slices.MinFunc(hints, func(hint, other string) int { return len(hint) - len(other) }))
}
