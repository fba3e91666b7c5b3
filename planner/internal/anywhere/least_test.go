package anywhere

import (
	"reflect"
	"testing"

	"github.com/devmap-dev/devmap/costmodel/timeline"
)

// TestLeast: the relaxation takes the least of every figure of a run, of those
// too that a later version adds.
func TestLeast(t *testing.T) {
	var one, two timeline.Summary
	for i := range reflect.TypeFor[timeline.Summary]().NumField() {
		a, b := reflect.ValueOf(&one).Elem().Field(i), reflect.ValueOf(&two).Elem().Field(i)
		if a.Kind() == reflect.Bool {
			b.SetBool(true)
			continue
		}
		a.SetInt(1)
		b.SetInt(2)
	}
	if got := least(one, two); got != one {
		t.Errorf("%+v of %+v and %+v", got, one, two)
	}
	if got := least(two, one); got != one {
		t.Errorf("%+v of %+v and %+v", got, two, one)
	}
}
