// Package library finds libraries that are opened at run time.
package library

import (
	"errors"
	"strings"
)

// nowhere is the loader's error for a missing library: one such reason is enough.
const nowhere = "No such file or directory"

// Find calls open for a library's places, one after another, until open returns no reason against a
// place. The error has all reasons, but only the first of those that say that nothing is there.
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
