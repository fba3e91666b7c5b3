//go:build cuda && linux && cgo && amd64

package driver

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// ledger counts what the process holds of the driver's, by kind: what was made
// and not given back. After the last machine is closed it is empty.
var ledger struct {
	sync.Mutex
	held map[string]holding
}

type holding struct{ count, bytes int64 }

func enter(kind string, count, bytes int64) {
	ledger.Lock()
	defer ledger.Unlock()
	if ledger.held == nil {
		ledger.held = make(map[string]holding)
	}
	now := ledger.held[kind]
	now.count, now.bytes = now.count+count, now.bytes+bytes
	if ledger.held[kind] = now; now == (holding{}) {
		delete(ledger.held, kind)
	}
}

// Held is what the process holds, a word or two a kind; empty: nothing.
func Held() string {
	ledger.Lock()
	defer ledger.Unlock()
	var kinds []string
	for kind, now := range ledger.held {
		text := fmt.Sprintf("%d %s", now.count, kind)
		if now.bytes != 0 {
			text += fmt.Sprintf(" of %d bytes", now.bytes)
		}
		kinds = append(kinds, text)
	}
	slices.Sort(kinds)
	return strings.Join(kinds, ", ")
}
