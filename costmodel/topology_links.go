package costmodel

// link is that between two devices, either way round where only one is given.
func (t *Topology) link(from, to int) *Link {
	var back *Link
	for i := range t.Links {
		l := &t.Links[i]
		switch {
		case l.From == from && l.To == to:
			return l
		case l.From == to && l.To == from:
			back = l
		}
	}
	return back
}

// sameHost reports devices that the topology names one host for.
func (t *Topology) sameHost(a, b int) bool {
	return t.Devices[a].Host != "" && t.Devices[a].Host == t.Devices[b].Host
}

// Apart reports devices on two hosts whose rate between hosts is known.
func (t *Topology) Apart(a, b int) bool {
	x, y := &t.Devices[a], &t.Devices[b]
	return x.Host != y.Host && min(x.HostBytesPerSecond, y.HostBytesPerSecond) > 0
}

// Linked reports that data can go from one device to the other: by a link,
// between hosts at their known rate, inside a host, or, where a topology
// gives no links at all, by their ports.
func (t *Topology) Linked(from, to int) bool {
	switch {
	case from == to || t.link(from, to) != nil:
		return true
	case t.Devices[from].Host != t.Devices[to].Host:
		return t.Apart(from, to)
	}
	return len(t.Links) == 0 || t.sameHost(from, to)
}

// SendSeconds is the time of a copy between two devices: by their link, or
// by the slower of their ports where no link is given; 0 where their rates are
// not known.
func (t *Topology) SendSeconds(from, to int, bytes int64) float64 {
	if l := t.link(from, to); l != nil {
		return l.LatencySeconds + float64(bytes)/l.BytesPerSecond
	}
	a, b := &t.Devices[from], &t.Devices[to]
	rate := min(a.LinkBytesPerSecond, b.LinkBytesPerSecond)
	if t.Apart(from, to) {
		rate = min(a.HostBytesPerSecond, b.HostBytesPerSecond)
	}
	if rate <= 0 {
		return 0
	}
	return float64(bytes) / rate
}
