package report

import "github.com/devmap-dev/devmap/executor"

// Link is a path that bytes took between two devices, or between a device and the host.
type Link struct {
	From      *int   `json:"from"` // a device of the plan; null: the host
	To        *int   `json:"to"`
	Transport string `json:"transport"` // "peer", from memory to memory, or "host", by way of the host's
	// CheckedBytes is how many random bytes arrived unchanged before the first step.
	CheckedBytes int64 `json:"checked_bytes"`
	// StagingBytes is how much pinned host memory it takes.
	StagingBytes int64 `json:"staging_bytes"`
}

func linkOf(of *executor.Link) Link {
	return Link{From: end(of.From), To: end(of.To), Transport: of.Transport, CheckedBytes: of.Checked, StagingBytes: of.Staging}
}

// end returns a device's number, or nil for the host.
func end(device int32) *int {
	if device == executor.TheHost {
		return nil
	}
	number := int(device)
	return &number
}
