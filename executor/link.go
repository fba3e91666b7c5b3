package executor

// Linked is a [Machine] whose messages go over links that it knows.
type Linked interface {
	// Links are those in use, as they were found at Open.
	Links() []Link
}

// TheHost is what a link's end is that is no device.
const TheHost int32 = -1

// Link is a way that bytes take from one device to another, or between one and the
// host.
type Link struct {
	From, To  int32  // of the plan, or TheHost
	Transport string // peer: from memory to memory; host: by way of the host's
	// Checked is how many bytes it carried at the start that were what was sent.
	Checked int64
	// Staging is how many bytes of the host's memory it takes.
	Staging int64
}
