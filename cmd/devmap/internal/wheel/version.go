package wheel

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	described = regexp.MustCompile(`^v?(.+)-(\d+)-g([0-9a-f]+)(-dirty)?$`)
	semantic  = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)\.([0-9]+)(?:-?(a|b|rc|alpha|beta)\.?([0-9]+))?$`)
)

// Version converts git's version to a version that Python orders correctly (PEP 440). description
// is the output of `git describe --long --dirty`: v1.2.3-0-gabcdef becomes 1.2.3, and
// v1.2.3-5-gabcdef becomes 1.2.4.dev5+gabcdef, between 1.2.3 and 1.2.4.
func Version(description string) (string, error) {
	found := described.FindStringSubmatch(description)
	if found == nil {
		return "", fmt.Errorf("%q is not what git describe --long says: TAG-COMMITS-gHASH", description)
	}
	release, err := Release(found[1])
	if err != nil {
		return "", err
	}
	if found[2] == "0" && found[4] == "" {
		return release, nil
	}
	tag := semantic.FindStringSubmatch(found[1])
	// Commits after a release lead to the next release, and those after a candidate to the next
	// candidate.
	at := 3
	if tag[4] != "" {
		at = 5
	}
	last, err := strconv.Atoi(tag[at])
	if err != nil {
		return "", fmt.Errorf("%q: %w", found[1], err)
	}
	next := strings.TrimSuffix(release, tag[at]) + strconv.Itoa(last+1)
	local := "g" + found[3]
	if found[4] != "" {
		local += ".dirty"
	}
	return fmt.Sprintf("%s.dev%s+%s", next, found[2], local), nil
}

// Release converts a release's tag to Python's form: v1.2.3 becomes 1.2.3, and v1.2.3-rc.1 becomes
// 1.2.3rc1.
func Release(tag string) (string, error) {
	found := semantic.FindStringSubmatch(tag)
	if found == nil {
		return "", fmt.Errorf("%q is no version: MAJOR.MINOR.PATCH, or MAJOR.MINOR.PATCH-rc.N", tag)
	}
	release := strings.Join(found[1:4], ".")
	if found[4] != "" {
		release += map[string]string{"a": "a", "alpha": "a", "b": "b", "beta": "b", "rc": "rc"}[found[4]] + found[5]
	}
	return release, nil
}
