package show

import (
	"fmt"
	"slices"
	"strings"

	"github.com/devmap-dev/devmap/costmodel"
	"github.com/devmap-dev/devmap/executor/report"
)

// transports describes the paths of messages.
var transports = map[string]string{"peer": "from memory to memory", "host": "by way of the host"}

// links describes the messages between devices; empty: there were none.
func (rows *runTables) links() string {
	between := slices.DeleteFunc(slices.Clone(rows.Links), func(link report.Link) bool { return link.From == nil || link.To == nil })
	if len(between) == 0 {
		return ""
	}
	var order []string
	pairs := make(map[string][]string) // by transport
	checked, staging := between[0].CheckedBytes, int64(0)
	for _, link := range between {
		if pairs[link.Transport] == nil {
			order = append(order, link.Transport)
		}
		pairs[link.Transport] = append(pairs[link.Transport], fmt.Sprintf("%d to %d", *link.From, *link.To))
		checked, staging = min(checked, link.CheckedBytes), staging+link.StagingBytes
	}
	const most = 8
	for at, transport := range order {
		named := pairs[transport]
		if more := len(named) - most; more > 0 {
			named = append(named[:most:most], fmt.Sprintf("%d more", more))
		}
		order[at] = fmt.Sprintf("%s (%s)", transports[transport], strings.Join(named, ", "))
	}
	said := "messages went " + strings.Join(order, " and ")
	if checked > 0 {
		said += fmt.Sprintf("; before the first step each way carried %v as they were sent", costmodel.Bytes(checked))
	}
	if staging > 0 {
		said += fmt.Sprintf("; %v of the host's memory were theirs", costmodel.Bytes(staging))
	}
	return said + "\n"
}
