// Package library finds libraries that are opened at run time.
package library

import (
	"errors"
	"strings"
)

// nowhere is what the loader says of a library that is not there: once is enough.
const nowhere = "No such file or directory"

// Find has open try a library's places in turn until it takes one and gives
// no reason against it. The error is all reasons, and of those that nothing is there
// the first.
func Find(places []string, open func(place string) (reason string)) error {
	var tried []error
	for _, place := range places {
		reason := open(place)
		if reason == "" {
			return nil
		}
		if len(tried) == 0 || !strings.Contains(reason, nowhere) {
			tried = append(tried, errors.New(reason))
		}
	}
	return errors.Join(tried...)
}
