module github.com/devmap-dev/devmap

go 1.26.0

require (
	github.com/agnivade/levenshtein v1.2.2
	github.com/dustin/go-humanize v1.1.0
	github.com/go-json-experiment/json v0.0.0-20260820222146-c27c302e5fc3
	github.com/google/go-cmp v0.7.0
	gonum.org/v1/gonum v0.17.0
)
