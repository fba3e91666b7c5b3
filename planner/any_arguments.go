package planner

// BoundValue is one argument for a lower bound of the largest share, and what
// it proves.
type BoundValue struct {
	Name  string
	Value float64
	// What says which unit or moment it rests on.
	What string
}

// bounds are all arguments, for --explain.
func (a *anySearch) bounds() []BoundValue {
	share, c := a.sc.largestItem()
	unit := BoundValue{Name: "largest unit", Value: share.Float(), What: "what the devices hold without units"}
	if c >= 0 {
		unit.What = a.sc.nameOf(c)
	}
	out := []BoundValue{unit, {Name: "average", Value: a.average, What: a.at}}
	if a.relaxed > 0 {
		out = append(out, BoundValue{"relaxed search", a.relaxed, "units that differ little counted as the least of them"})
	}
	switch {
	case a.proved:
		out = append(out, BoundValue{"search", a.value.Float(), "every smaller share was refuted"})
	case a.refuted > 0:
		out = append(out, BoundValue{"search", a.refuted, "the largest share that was refuted"})
	}
	return out
}
