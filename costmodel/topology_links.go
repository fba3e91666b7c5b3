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

// apart reports devices on two hosts whose rate between hosts is known.
func (t *Topology) apart(a, b int) bool {
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
		return t.apart(from, to)
	}
	return len(t.Links) == 0 || t.sameHost(from, to)
}
