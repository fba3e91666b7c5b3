package library

import (
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	reasons := map[string]string{
		"one": "one: No such file or directory", "two": "two: No such file or directory",
		"old": "old has no entry", "there": "",
	}
	for _, test := range []struct {
		places, tried []string
		want          string
	}{
		{[]string{"one", "there", "old"}, []string{"one", "there"}, ""},
		{[]string{"one", "two", "old"}, []string{"one", "two", "old"}, "one: No such file or directory\nold has no entry"},
		{[]string{"old", "one"}, []string{"old", "one"}, "old has no entry"},
	} {
		var tried []string
		err := Find(test.places, func(place string) string {
			tried = append(tried, place)
			return reasons[place]
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want || !slices.Equal(tried, test.tried) {
			t.Errorf("%q: tried %q, %q; want %q", test.places, tried, got, test.want)
		}
	}
}
