package report

import "github.com/devmap-dev/devmap/executor"

// Link is a way that bytes took from one device to another, or between one and the
// host.
type Link struct {
	From      *int   `json:"from"` // a device of the plan; null: the host
	To        *int   `json:"to"`
	Transport string `json:"transport"` // peer: from memory to memory; host: by way of the host's
	// CheckedBytes is how many random bytes it carried before the first step that
	// arrived as they were sent.
	CheckedBytes int64 `json:"checked_bytes"`
	// StagingBytes is what it takes of the host's memory, pinned.
	StagingBytes int64 `json:"staging_bytes"`
}

func linkOf(of *executor.Link) Link {
	return Link{From: end(of.From), To: end(of.To), Transport: of.Transport, CheckedBytes: of.Checked, StagingBytes: of.Staging}
}

// end is a device, or the host.
func end(device int32) *int {
	if device == executor.TheHost {
		return nil
	}
	number := int(device)
	return &number
}
