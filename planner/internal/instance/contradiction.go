package instance

import (
	"errors"
	"slices"
)

// maxPairs is the most constraints for which all pairs are tried.
const maxPairs = 40

// Contradicted reduces a contradiction to a pair, if a pair contradicts itself. Otherwise it leaves
// out constraints one by one while the rest still contradicts itself (the deletion filter of
// Chinneck and Dravnieks, ORSA J. on Computing 3, 1991). A single constraint has its own error.
// Other errors are returned unchanged.
func (in *Instance) Contradicted(err error) error {
	constraints := len(in.Pins) + len(in.Together)
	if constraints < 2 || !Contradicts(err) {
		return err
	}
	all := make([]int, constraints)
	for i := range all {
		all[i] = i
	}
	for i := range all {
		if in.Only(all[i:i+1]).contradiction() != nil {
			return err
		}
	}
	if set, found := in.pair(all); found {
		return in.Only(set).named()
	}
	for i := 0; i < len(all); {
		less := slices.Delete(slices.Clone(all), i, i+1)
		if in.Only(less).contradiction() != nil {
			all = less
			continue
		}
		i++
	}
	if only := in.Only(all); only.contradiction() != nil {
		return only.named()
	}
	return err
}

// pair returns two constraints that contradict each other.
func (in *Instance) pair(all []int) ([]int, bool) {
	if len(all) > maxPairs {
		return nil, false
	}
	for j := range all {
		for i := range j {
			if set := []int{i, j}; in.Only(set).contradiction() != nil {
				return set, true
			}
		}
	}
	return nil, false
}

// named returns the error of the instance's constraints, with all of them.
func (in *Instance) named() error {
	var wrong *ConstraintError
	if err := in.contradiction(); !errors.As(err, &wrong) {
		return err
	}
	out := *wrong
	for i := range in.Pins {
		out.Pins = append(out.Pins, in.Pins[i].Pin)
	}
	for i := range in.Together {
		out.Together = append(out.Together, in.Together[i].Patterns)
	}
	return &out
}

// contradiction returns the constraints' error; nil if some map keeps them.
func (in *Instance) contradiction() error {
	var err error
	if in.AnyAssignment {
		_, err = in.Sets()
	} else if items, failed := in.Items(); failed != nil {
		err = failed
	} else {
		err = items.Contradiction()
	}
	if Contradicts(err) {
		return err
	}
	return nil
}

// Contradicts reports an error about constraints that no map keeps.
func Contradicts(err error) bool {
	var constraint *ConstraintError
	return errors.As(err, &constraint)
}
