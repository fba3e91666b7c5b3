//go:build cuda && linux && cgo && amd64

package driver

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ledger counts the driver's objects that the process made and did not release, by kind.
// After the last machine is closed it is empty.
var ledger struct {
	sync.Mutex
	unreleased map[string]holding
}

type holding struct{ count, bytes int64 }

func enter(kind string, count, bytes int64) {
	ledger.Lock()
	defer ledger.Unlock()
	if ledger.unreleased == nil {
		ledger.unreleased = make(map[string]holding)
	}
	now := ledger.unreleased[kind]
	now.count, now.bytes = now.count+count, now.bytes+bytes
	if ledger.unreleased[kind] = now; now == (holding{}) {
		delete(ledger.unreleased, kind)
	}
}

// Holding is what the process has not released, of one kind. Bytes are 0 for kinds without a size.
type Holding struct {
	Kind         string
	Count, Bytes int64
}

// Holdings returns what the process has not released, by kind.
func Holdings() (all []Holding) {
	ledger.Lock()
	defer ledger.Unlock()
	for kind, now := range ledger.unreleased {
		all = append(all, Holding{kind, now.count, now.bytes})
	}
	slices.SortFunc(all, func(one, other Holding) int { return strings.Compare(one.Kind, other.Kind) })
	return all
}

// Unreleased lists what the process has not released, a word or two a kind; empty: nothing.
func Unreleased() string {
	var kinds []string
	for _, now := range Holdings() {
		text := fmt.Sprintf("%d %s", now.Count, now.Kind)
		if now.Bytes != 0 {
			text += fmt.Sprintf(" of %d bytes", now.Bytes)
		}
		kinds = append(kinds, text)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
